package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grailbio/base/recordio"
)

// seekLimit bounds the seeks in one file: each one unpacks a whole block.
const seekLimit = 40

func checkFile(directory string, expected entry, report *report) error {
	data, err := os.ReadFile(filepath.Join(directory, expected.File))
	if err != nil {
		return err
	}
	report.attempt("header", func() error { return checkHeader(data, expected, report) })
	report.attempt("trailer", func() error {
		found, err := describeTrailer(newScanner(data, expected.Kind))
		report.compare("trailer", expected.Trailer, found)
		return err
	})
	report.attempt("scan", func() error {
		found, err := scanFile(data, expected.Kind, expected.Transformers, expected.Locations)
		report.compareRecords("records", expected.Records, found)
		return err
	})
	report.attempt("seek", func() error { return checkSeeks(data, expected, report) })
	if needsFreshScanners(expected.Transformers, expected.Locations) {
		return nil
	}
	for _, shard := range expected.Shards {
		report.attempt("shard", func() error { return checkShard(data, expected, shard, report) })
	}
	return nil
}

func checkHeader(data []byte, expected entry, report *report) error {
	scanner := newScanner(data, expected.Kind)
	if err := scanner.Err(); err != nil {
		return err
	}
	// Of an empty file the scanner knows no version.
	if len(data) > 0 {
		report.compare("version", expected.Version, int(scanner.Version()))
	}
	pairs, err := describeHeader(scanner.Header())
	if err != nil {
		return err
	}
	report.compare("header", expected.Header, pairs)
	transformers := []string{}
	for _, pair := range pairs {
		if pair[0] == recordio.KeyTransformer {
			transformers = append(transformers, pair[2])
		}
	}
	report.compare("transformers", expected.Transformers, transformers)
	return nil
}

// checkSeeks visits locations from the last to the first, reading two items at each.
func checkSeeks(data []byte, expected entry, report *report) error {
	// Seeking twice unpacks twice, even in a file of one block: see scan.go.
	fresh := len(expected.Transformers) > 1
	scanner := newScanner(data, expected.Kind)
	step := max(1, len(expected.Locations)/seekLimit)
	for position := len(expected.Locations) - 1; position >= 0; position -= step {
		at := expected.Locations[position]
		if fresh {
			scanner = newScanner(data, expected.Kind)
		}
		scanner.Seek(recordio.ItemLocation{Block: at[0], Item: int(at[1])})
		what := fmt.Sprintf("item at block %d, item %d", at[0], at[1])
		if !scanner.Scan() {
			return fmt.Errorf("%s: none: %v", what, scanner.Err())
		}
		report.compare(what, expected.Records[position], digest(scanner.Get().([]byte)))
		isLast := position+1 == len(expected.Locations)
		if fresh && (isLast || expected.Locations[position+1][0] != at[0]) {
			continue
		}
		if scanner.Scan() == isLast {
			return fmt.Errorf("%s: expected the last item to be this one: %v; %v", what, isLast, scanner.Err())
		}
		if !isLast {
			report.compare("after "+what, expected.Records[position+1], digest(scanner.Get().([]byte)))
		}
	}
	return scanner.Err()
}

func checkShard(data []byte, expected entry, shard shard, report *report) error {
	what := fmt.Sprintf("shard [%d,%d) of %d", shard.Start, shard.Limit, shard.N)
	first := 0
	if shard.First != nil {
		first = *shard.First
	}
	if first < 0 || shard.Count < 0 || first+shard.Count > len(expected.Records) {
		return fmt.Errorf("%s: %d items from %d on, of %d", what, shard.Count, first, len(expected.Records))
	}
	found, err := scanShard(data, shard.Start, shard.Limit, shard.N)
	report.compareRecords(what, expected.Records[first:first+shard.Count], found)
	return err
}
