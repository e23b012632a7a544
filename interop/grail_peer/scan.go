package main

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/grailbio/base/recordio"
	"github.com/grailbio/base/recordio/recordioflate"
)

// No scanner here is ever finished. Finish hands the scanner's buffers to the next one,
// and with two or more transformers the library unpacks a block wrongly whenever it has
// such a buffer: it takes it as output of one step while it is still input of the next.
// For the same reason such files are read with a fresh scanner for every block.

func newScanner(data []byte, kind string) recordio.Scanner {
	options := recordio.ScannerOpts{}
	if kind == kindPackedFlate {
		options.LegacyTransform = recordioflate.FlateUncompress
	}
	return recordio.NewScanner(bytes.NewReader(data), options)
}

// needsFreshScanners tells whether scanning on from one block into the next is unsafe.
func needsFreshScanners(transformers []string, locations []location) bool {
	return len(transformers) > 1 && blockCount(locations) > 1
}

func blockCount(locations []location) int {
	blocks := map[uint64]bool{}
	for _, at := range locations {
		blocks[at[0]] = true
	}
	return len(blocks)
}

func scanRest(scanner recordio.Scanner) ([]record, error) {
	records := []record{}
	for scanner.Scan() {
		records = append(records, digest(scanner.Get().([]byte)))
	}
	return records, scanner.Err()
}

// scanBlocks reads the items at the locations, block by block.
func scanBlocks(data []byte, kind string, locations []location) ([]record, error) {
	records := []record{}
	var scanner recordio.Scanner
	for position, at := range locations {
		if position == 0 || at[0] != locations[position-1][0] {
			scanner = newScanner(data, kind)
			scanner.Seek(recordio.ItemLocation{Block: at[0], Item: int(at[1])})
		}
		if !scanner.Scan() {
			return records, fmt.Errorf("no item at block %d, item %d: %v", at[0], at[1], scanner.Err())
		}
		records = append(records, digest(scanner.Get().([]byte)))
	}
	if scanner != nil && scanner.Scan() {
		return records, fmt.Errorf("an item after the last location")
	}
	return records, nil
}

func scanFile(data []byte, kind string, transformers []string, locations []location) ([]record, error) {
	if needsFreshScanners(transformers, locations) {
		return scanBlocks(data, kind, locations)
	}
	return scanRest(newScanner(data, kind))
}

func scanShard(data []byte, start, limit, n int) ([]record, error) {
	return scanRest(recordio.NewShardScanner(bytes.NewReader(data), recordio.ScannerOpts{}, start, limit, n))
}

// describeHeader gives [key, type, value] for each pair, the reserved ones included.
func describeHeader(header recordio.ParsedHeader) ([][3]string, error) {
	pairs := [][3]string{}
	for _, pair := range header {
		var kind string
		switch pair.Value.(type) {
		case bool:
			kind = "bool"
		case int64:
			kind = "int"
		case uint64:
			kind = "uint"
		case string:
			kind = "string"
		default:
			return nil, fmt.Errorf("header value of type %T", pair.Value)
		}
		pairs = append(pairs, [3]string{pair.Key, kind, fmt.Sprint(pair.Value)})
	}
	return pairs, nil
}

// describeTrailer gives the trailer in hex; nil where there is none, "" where it is empty.
func describeTrailer(scanner recordio.Scanner) (*string, error) {
	trailer := scanner.Trailer()
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if trailer == nil {
		return nil, nil
	}
	text := hex.EncodeToString(trailer)
	return &text, nil
}
