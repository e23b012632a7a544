package main

import (
	"bytes"

	"github.com/grailbio/base/recordio/deprecated"
	"github.com/grailbio/base/recordio/recordioutil"
)

// unpackedWriter appends to output; locations are those within the whole file.
func unpackedWriter(output *bytes.Buffer, made *entry) deprecated.LegacyWriter {
	start := uint64(output.Len())
	return deprecated.NewLegacyWriter(output, deprecated.LegacyWriterOpts{
		Marshal: func(_ []byte, value any) ([]byte, error) { return value.([]byte), nil },
		Index: func(offset, _ uint64, _ any, _ []byte) error {
			made.Locations = append(made.Locations, location{start + offset, 0})
			return nil
		},
	})
}

// packedOptions fills in the index callback, which is called once for each record.
func packedOptions(output *bytes.Buffer, made *entry, options deprecated.LegacyPackedWriterOpts) deprecated.LegacyPackedWriterOpts {
	start := uint64(output.Len())
	options.Index = func(offset, _, itemCount uint64) (deprecated.ItemIndexFunc, error) {
		for item := uint64(0); item < itemCount; item++ {
			made.Locations = append(made.Locations, location{start + offset, item})
		}
		return nil, nil
	}
	options.Marshal = func(_ []byte, value any) ([]byte, error) { return value.([]byte), nil }
	return options
}

// limits are those of one record; an item over the byte limit would be refused.
func limits(random source, items [][]byte) deprecated.LegacyPackedWriterOpts {
	options := deprecated.LegacyPackedWriterOpts{}
	if random.chance(40) {
		options.MaxItems = uint32(random.between(1, 30))
	}
	if random.chance(40) {
		largest := 1
		for _, item := range items {
			largest = max(largest, len(item))
		}
		options.MaxBytes = uint32(largest * random.between(1, 4))
	}
	return options
}

func writeUnpacked(random source) (entry, []byte, error) {
	made := newEntry(kindUnpacked, 1)
	var output bytes.Buffer
	writer := unpackedWriter(&output, &made)
	for _, item := range random.items() {
		var err error
		switch random.Intn(3) {
		case 0:
			_, err = writer.Write(item)
		case 1:
			_, err = writer.Marshal(item)
		default:
			cut := random.between(0, len(item))
			_, err = writer.WriteSlices(item[:cut], item[cut:])
		}
		if err != nil {
			return made, nil, err
		}
	}
	return made, output.Bytes(), nil
}

func appendPacked(random source, writer deprecated.LegacyPackedWriter, items [][]byte) error {
	flushPercent := choose(random, 0, 0, 5, 30)
	for _, item := range items {
		write := writer.Write
		if random.chance(30) {
			write = func(item []byte) (int, error) { return writer.Marshal(item) }
		}
		if _, err := write(item); err != nil {
			return err
		}
		if random.chance(flushPercent) {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
	return writer.Flush()
}

func writePacked(random source) (entry, []byte, error) {
	made := newEntry(kindPacked, 1)
	var output bytes.Buffer
	items := random.items()
	options := packedOptions(&output, &made, limits(random, items))
	err := appendPacked(random, deprecated.NewLegacyPackedWriter(&output, options), items)
	return made, output.Bytes(), err
}

func writePackedFlate(random source) (entry, []byte, error) {
	made := newEntry(kindPackedFlate, 1)
	var output bytes.Buffer
	items := random.items()
	options := packedOptions(&output, &made, limits(random, items))
	options.Transform = recordioutil.NewFlateTransform(random.between(-2, 9)).CompressTransform
	err := appendPacked(random, deprecated.NewLegacyPackedWriter(&output, options), items)
	return made, output.Bytes(), err
}

func writeMixed(random source) (entry, []byte, error) {
	made := newEntry(kindMixed, 1)
	var output bytes.Buffer
	for count := random.between(2, 6); count > 0; count-- {
		item := random.item(random.itemSize(10))
		if _, err := unpackedWriter(&output, &made).Write(item); err != nil {
			return made, nil, err
		}
		items := [][]byte{random.item(random.itemSize(10)), random.item(random.itemSize(10))}
		options := packedOptions(&output, &made, deprecated.LegacyPackedWriterOpts{})
		if err := appendPacked(random, deprecated.NewLegacyPackedWriter(&output, options), items); err != nil {
			return made, nil, err
		}
	}
	return made, output.Bytes(), nil
}
