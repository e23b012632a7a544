package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/grailbio/base/recordio"
)

func writeFile(directory string, ordinal int, random source) (entry, error) {
	var made entry
	var data []byte
	var err error
	extension := ".grail-rio"
	switch random.weighted(60, 12, 12, 12, 4) {
	case 0:
		made, data, err = writeV2(random)
	case 1:
		made, data, err = writeUnpacked(random)
	case 2:
		extension = ".grail-rpk"
		made, data, err = writePacked(random)
	case 3:
		extension = ".grail-rpk-gz"
		made, data, err = writePackedFlate(random)
	default:
		made, data, err = writeMixed(random)
	}
	if err != nil {
		return made, err
	}
	made.File = fmt.Sprintf("%05d%s", ordinal, extension)
	if made.Records, err = scanFile(data, made.Kind, made.Transformers, made.Locations); err != nil {
		return made, err
	}
	if len(made.Records) != len(made.Locations) {
		return made, fmt.Errorf("%s: %d items written, %d read back", made.File, len(made.Locations), len(made.Records))
	}
	return made, os.WriteFile(filepath.Join(directory, made.File), data, 0o666)
}

// newEntry has no nil slice, so that the manifest has [] and not null.
func newEntry(kind string, version int) entry {
	return entry{
		Kind: kind, Version: version, Transformers: []string{}, Header: [][3]string{},
		Locations: []location{}, Shards: []shard{},
	}
}

func writeV2(random source) (entry, []byte, error) {
	made := newEntry(kindV2, 2)
	made.Transformers = randomTransformers(random)
	items := random.items()
	withTrailer, trailerByOption := random.chance(40), random.chance(50)
	flushPercent := 0
	if len(items) <= 300 {
		flushPercent = choose(random, 0, 0, 5, 20)
	}

	var output bytes.Buffer
	var writerStart uint64
	options := recordio.WriterOpts{
		Transformers:        made.Transformers,
		KeyTrailer:          withTrailer && trailerByOption,
		MaxFlushParallelism: uint32(choose(random, 0, 1, 3)),
		// Called in file order, as one block is written at a time.
		Index: func(at recordio.ItemLocation, _ any) error {
			made.Locations = append(made.Locations, location{writerStart + at.Block, uint64(at.Item)})
			return nil
		},
	}
	if random.chance(50) {
		options.MaxItems = uint32(max(random.between(1, 40), len(items)/20))
	}
	writer := recordio.NewWriter(&output, options)
	if withTrailer && !trailerByOption {
		writer.AddHeader(recordio.KeyTrailer, true)
	}
	addHeaders(random, writer)
	if len(items) > 1 && random.chance(10) {
		// A second writer continues the file without a header of its own. It counts its
		// offsets from 0, and has to be told of the trailer by the option.
		cut := random.between(1, len(items)-1)
		appendItems(random, writer, items[:cut], flushPercent)
		if err := writer.Finish(); err != nil {
			return made, nil, err
		}
		writerStart, items = uint64(output.Len()), items[cut:]
		options.SkipHeader, options.KeyTrailer = true, withTrailer
		writer = recordio.NewWriter(&output, options)
	}
	appendItems(random, writer, items, flushPercent)
	if withTrailer {
		writer.SetTrailer(random.item(choose(random, 0, random.between(1, 500), random.between(1, 70_000))))
	}
	if err := writer.Finish(); err != nil {
		return made, nil, err
	}
	return describeV2(random, made, output.Bytes())
}

// describeV2 fills in what the scanner says of header, trailer and shards.
func describeV2(random source, made entry, data []byte) (entry, []byte, error) {
	scanner := newScanner(data, made.Kind)
	if err := scanner.Err(); err != nil {
		return made, nil, err
	}
	var err error
	if made.Header, err = describeHeader(scanner.Header()); err != nil {
		return made, nil, err
	}
	if made.Trailer, err = describeTrailer(scanner); err != nil {
		return made, nil, err
	}
	if needsFreshScanners(made.Transformers, made.Locations) {
		return made, data, nil
	}
	n := choose(random, 1, 2, 3, 4, 7, 16)
	for count := 0; count < min(n, 4); count++ {
		start := random.Intn(n)
		found, err := describeShard(data, start, random.between(start+1, n), n)
		if err != nil {
			return made, nil, err
		}
		made.Shards = append(made.Shards, found)
	}
	return made, data, nil
}

func describeShard(data []byte, start, limit, n int) (shard, error) {
	made := shard{N: n, Start: start, Limit: limit}
	records, err := scanShard(data, start, limit, n)
	if err != nil {
		return made, err
	}
	made.Count = len(records)
	if made.Count == 0 {
		return made, nil
	}
	// The scanner does not say which items these are; those of the shards before do.
	first := 0
	if start > 0 {
		before, err := scanShard(data, 0, start, n)
		if err != nil {
			return made, err
		}
		first = len(before)
	}
	made.First = &first
	return made, nil
}

func appendItems(random source, writer recordio.Writer, items [][]byte, flushPercent int) {
	for _, item := range items {
		writer.Append(item)
		if random.chance(flushPercent) {
			writer.Flush()
			if random.chance(20) {
				writer.Wait()
			}
		}
	}
}

func randomTransformers(random source) []string {
	chain := []string{}
	for count := random.weighted(30, 50, 14, 6); count > 0; count-- {
		if random.chance(55) {
			chain = append(chain, choose(random, "zstd", "zstd -1", "zstd 0", "zstd 1", "zstd 3", "zstd 9", "zstd 22"))
		} else {
			chain = append(chain, choose(random, "flate", "flate -1", "flate -2", "flate 0", "flate 1", "flate 5", "flate 9"))
		}
	}
	return chain
}

// addHeaders adds pairs of every type the writer takes; all signed ones read back as
// int64, all unsigned ones as uint64. Keys may be empty, and may repeat.
func addHeaders(random source, writer recordio.Writer) {
	for count := choose(random, 0, 0, 1, 3, random.between(1, 20)); count > 0; count-- {
		key := choose(random, "", "name", "ключ", "a key with spaces", fmt.Sprintf("key%d", count))
		switch random.Intn(14) {
		case 0:
			writer.AddHeader(key, random.chance(50))
		case 1:
			writer.AddHeader(key, random.between(-1000, 1000))
		case 2:
			writer.AddHeader(key, int8(random.between(-128, 127)))
		case 3:
			writer.AddHeader(key, int16(random.between(-32768, 32767)))
		case 4:
			writer.AddHeader(key, int32(random.Uint32()))
		case 5:
			writer.AddHeader(key, choose(random, int64(random.Uint64()), math.MinInt64, math.MaxInt64))
		case 6:
			writer.AddHeader(key, uint(random.Uint32()))
		case 7:
			writer.AddHeader(key, uint8(random.Intn(256)))
		case 8:
			writer.AddHeader(key, uint16(random.Intn(65536)))
		case 9:
			writer.AddHeader(key, random.Uint32())
		case 10:
			writer.AddHeader(key, choose(random, random.Uint64(), math.MaxUint64, 0))
		default:
			// Long ones make the header block more than one chunk.
			length := choose(random, 0, 1, 50, 200, random.between(1, 50_000))
			writer.AddHeader(key, strings.Repeat(choose(random, "x", "é", "値"), length))
		}
	}
}
