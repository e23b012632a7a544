// Command grail_peer is the GRAIL side of the interop check: the recordio packages of
// github.com/grailbio/base, as released, behind two commands.
//
//	grail_peer write DIR --seed S --count N
//	grail_peer read DIR
//
// write makes files and states in DIR/manifest.jsonl what the original scanner finds in
// them; read checks the files in DIR against such a manifest.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grailbio/base/recordio/recordioflate"
	"github.com/grailbio/base/recordio/recordiozstd"
)

const manifestName = "manifest.jsonl"

func main() {
	recordioflate.Init()
	recordiozstd.Init()
	if len(os.Args) < 3 {
		usage()
	}
	command, directory := os.Args[1], os.Args[2]
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	switch command {
	case "write":
		seed := flags.Int64("seed", 0, "what the files are a function of")
		count := flags.Int("count", 0, "how many files")
		flags.Parse(os.Args[3:])
		if err := writeAll(directory, *seed, *count); err != nil {
			fail(err)
		}
	case "read":
		flags.Parse(os.Args[3:])
		mismatches, err := readAll(directory)
		if err != nil {
			fail(err)
		}
		if mismatches > 0 {
			os.Exit(1)
		}
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: grail_peer write DIR --seed S --count N | grail_peer read DIR")
	os.Exit(2)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "grail_peer:", err)
	os.Exit(2)
}

func writeAll(directory string, seed int64, count int) error {
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(directory, manifestName))
	if err != nil {
		return err
	}
	defer file.Close()
	manifest := json.NewEncoder(file)
	for ordinal := 0; ordinal < count; ordinal++ {
		entry, err := writeFile(directory, ordinal, newSource(seed, ordinal))
		if err != nil {
			return fmt.Errorf("file %d: %w", ordinal, err)
		}
		if err := manifest.Encode(entry); err != nil {
			return err
		}
	}
	return file.Close()
}

func readAll(directory string) (int, error) {
	file, err := os.Open(filepath.Join(directory, manifestName))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	report := &report{output: json.NewEncoder(output)}
	checked := 0
	lines := json.NewDecoder(file)
	for lines.More() {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			return 0, err
		}
		checked++
		entry, err := parseEntry(line)
		report.file = entry.File
		if err != nil {
			report.mismatch("manifest", "an entry of the agreed shape", err.Error())
			continue
		}
		report.attempt("check", func() error { return checkFile(directory, entry, report) })
	}
	report.output.Encode(map[string]int{"checked": checked, "mismatches": report.mismatches})
	return report.mismatches, nil
}
