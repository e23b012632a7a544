package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
)

// record is one item as the manifest states it: [length, sha256].
type record struct {
	length int
	sha256 string
}

func digest(item []byte) record {
	sum := sha256.Sum256(item)
	return record{len(item), hex.EncodeToString(sum[:])}
}

func (r record) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{r.length, r.sha256})
}

func (r *record) UnmarshalJSON(text []byte) error {
	pair := []any{&r.length, &r.sha256}
	return json.Unmarshal(text, &pair)
}

// location is an item's address: byte offset of its block (of its record, in a legacy
// file), and which item of the block it is.
type location [2]uint64

// shard is what a sharded scan of [Start, Limit) of N gives: Count items from item First
// of the file on. First is null when there are none.
type shard struct {
	N     int  `json:"n"`
	Start int  `json:"start"`
	Limit int  `json:"limit"`
	First *int `json:"first"`
	Count int  `json:"count"`
}

// The kinds of file. Mixed is a legacy file with packed and unpacked records.
const (
	kindV2          = "v2"
	kindUnpacked    = "unpacked"
	kindPacked      = "packed"
	kindPackedFlate = "packed-flate"
	kindMixed       = "mixed"
)

type entry struct {
	File         string      `json:"file"`
	Version      int         `json:"version"`
	Kind         string      `json:"kind"`
	Transformers []string    `json:"transformers"`
	Header       [][3]string `json:"header"`
	Trailer      *string     `json:"trailer"`
	Records      []record    `json:"records"`
	Locations    []location  `json:"locations"`
	Shards       []shard     `json:"shards"`
}

// parseEntry wants exactly the fields of entry: a misspelt or forgotten one would mean a
// check silently left out.
func parseEntry(line []byte) (entry, error) {
	var parsed entry
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&parsed); err != nil {
		return parsed, err
	}
	var present map[string]json.RawMessage
	if err := json.Unmarshal(line, &present); err != nil {
		return parsed, err
	}
	fields := reflect.TypeOf(parsed)
	for at := 0; at < fields.NumField(); at++ {
		name := fields.Field(at).Tag.Get("json")
		if _, found := present[name]; !found {
			return parsed, fmt.Errorf("field %q is missing", name)
		}
	}
	if len(parsed.Locations) != len(parsed.Records) {
		return parsed, fmt.Errorf("%d locations for %d records", len(parsed.Locations), len(parsed.Records))
	}
	return parsed, nil
}

// report prints one JSON line for each mismatch, and counts them.
type report struct {
	file       string
	mismatches int
	output     *json.Encoder
}

func (r *report) mismatch(what string, expected, found any) {
	r.mismatches++
	r.output.Encode(map[string]any{"file": r.file, "what": what, "expected": expected, "found": found})
}

func (r *report) compare(what string, expected, found any) {
	if !reflect.DeepEqual(expected, found) {
		r.mismatch(what, expected, found)
	}
}

// attempt turns an error of the library, or its panic, into a mismatch.
func (r *report) attempt(what string, step func() error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r.mismatch(what, "no panic", fmt.Sprint(panicked))
		}
	}()
	if err := step(); err != nil {
		r.mismatch(what, "no error", err.Error())
	}
}

// compareRecords names the first difference only: after a shift every later one differs.
func (r *report) compareRecords(what string, expected, found []record) {
	if len(expected) != len(found) {
		r.mismatch(what+": count", len(expected), len(found))
	}
	for at := 0; at < min(len(expected), len(found)); at++ {
		if expected[at] != found[at] {
			r.mismatch(fmt.Sprintf("%s[%d]", what, at), expected[at], found[at])
			return
		}
	}
}
