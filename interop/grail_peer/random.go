package main

import (
	"bytes"
	"math/rand"
)

// source is a file's own stream of random choices: file 17 is the same whatever the count.
type source struct{ *rand.Rand }

func newSource(seed int64, ordinal int) source {
	return source{rand.New(rand.NewSource(seed*1_000_003 + int64(ordinal)))}
}

// between gives a number from low to high, both included.
func (s source) between(low, high int) int { return low + s.Intn(high-low+1) }

func (s source) chance(percent int) bool { return s.Intn(100) < percent }

// weighted gives the index of one of the weights.
func (s source) weighted(weights ...int) int {
	total := 0
	for _, weight := range weights {
		total += weight
	}
	at := s.Intn(total)
	for index, weight := range weights {
		if at < weight {
			return index
		}
		at -= weight
	}
	return 0
}

func choose[T any](s source, values ...T) T { return values[s.Intn(len(values))] }

// magics are the words that begin a chunk or a legacy record: inside an item they are
// plain bytes, and no reader may stop at them.
var magics = [][]byte{
	{0xd9, 0xe1, 0xd9, 0x5c, 0xc2, 0x16, 0x04, 0xf7},
	{0x2e, 0x76, 0x47, 0xeb, 0x34, 0x07, 0x3c, 0x2e},
	{0xfe, 0xba, 0x1a, 0xd7, 0xcb, 0xdf, 0x75, 0x3a},
	{0xfc, 0xae, 0x95, 0x31, 0xf0, 0xd9, 0xbd, 0x20},
}

func (s source) itemCount() int {
	switch s.weighted(10, 10, 58, 18, 4) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return s.between(2, 40)
	case 3:
		return s.between(41, 300)
	default:
		// Past the default number of items in a block.
		return s.between(16_300, 17_000)
	}
}

func (s source) itemSize(itemCount int) int {
	if itemCount > 1000 {
		return s.between(0, 12)
	}
	if itemCount > 40 {
		return s.between(0, 300)
	}
	switch s.weighted(10, 70, 14, 6) {
	case 0:
		return 0
	case 1:
		return s.between(1, 300)
	case 2:
		return s.between(301, 5000)
	default:
		return s.between(5001, 70_000)
	}
}

func (s source) item(size int) []byte {
	item := make([]byte, size)
	switch s.weighted(35, 35, 15, 15) {
	case 0:
		s.Read(item)
	case 1:
		for at := range item {
			item[at] = "acgtn \n"[s.Intn(7)]
		}
	case 2:
		copy(item, bytes.Repeat(choose(s, magics...), size/8+1))
	default:
		s.Read(item)
		for count := s.between(1, 5); count > 0 && size >= 8; count-- {
			copy(item[s.Intn(size-7):], choose(s, magics...))
		}
	}
	return item
}

func (s source) items() [][]byte {
	items := make([][]byte, s.itemCount())
	for at := range items {
		items[at] = s.item(s.itemSize(len(items)))
	}
	return items
}
