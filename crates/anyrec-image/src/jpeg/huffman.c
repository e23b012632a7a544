/*
 * A faster Huffman decoder for libjpeg, which spends most of its time on Huffman codes.
 *
 * libjpeg looks a code up, then takes the bits of the coefficient that follow it: two dependent steps.
 * Here a single lookup of the next LOOK bits mostly gives both at once: the number of leading zeros, the
 * coefficient, and the number of bits consumed.
 *
 * It replaces libjpeg's function that decodes a unit of blocks (an MCU) and works on libjpeg's own state.
 * It handles only the plain case: one scan, no restarts, enough bytes ahead, no marker among them, every
 * code in the table. In any other case it leaves everything unchanged and lets libjpeg's function decode
 * the unit, so that unusual or damaged data is reported and handled as libjpeg does.
 *
 * What libjpeg does with damaged data depends on how far it has read ahead: it warns about some codes
 * only near a marker or the end. So after each unit, as many bytes are read as libjpeg would have read.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JPEG_INTERNALS
#include "jinclude.h"
#include "jpeglib.h"
#include "jdhuff.h"

/* The beginning of libjpeg's own decoder, as jdhuff.c has it (the crate's version is pinned). */
struct huffman_state {
  struct jpeg_entropy_decoder pub;
  bitread_perm_state bitstate;
  struct {
    int last_dc_val[MAX_COMPS_IN_SCAN];
  } saved;
};

typedef boolean (*decode_function)(j_decompress_ptr, JBLOCKROW *);

/* Bits per lookup: both tables for an image's luminance stay in the nearest cache. */
#define LOOK 10

/* An entry: bits consumed, zeros before the coefficient, the coefficient. No coefficient is 0: a value of 0
 * is the end of a block (zeros: 0) or 16 zeros (zeros: 15). If the lookup does not cover all of it, `bits`
 * is 0, `zeros` is the length of the code and `value` its symbol; length 0 means that the code is longer. */
struct entry {
  uint8_t bits;
  uint8_t zeros;
  int16_t value;
};

struct table {
  struct entry look[1 << LOOK];
  /* For longer codes: the largest code of each length (left-aligned to 16 bits, inclusive), and where its
   * symbols begin: symbol = symbols[first[length] + (code >> (16 - length))]. */
  int32_t most[18];
  int32_t first[17];
  const uint8_t *symbols;
};

struct tables {
  decode_function original;
  /* For each block of a unit. */
  const struct table *dc[D_MAX_BLOCKS_IN_MCU];
  const struct table *ac[D_MAX_BLOCKS_IN_MCU];
  uint8_t dc_needed[D_MAX_BLOCKS_IN_MCU];
  uint8_t ac_needed[D_MAX_BLOCKS_IN_MCU];
  struct table made[2 * NUM_HUFF_TBLS];
};

/* A coefficient from its size and bits. */
static inline int extend(int bits, int size) {
  return bits < (1 << (size - 1)) ? bits - (1 << size) + 1 : bits;
}

/* libjpeg has checked that the codes of every length fit. */
static void make_table(struct table *table, const JHUFF_TBL *huffman, int is_dc) {
  memset(table->look, 0, sizeof table->look);
  table->symbols = huffman->huffval;
  int code = 0, at = 0;
  for (int length = 1; length <= 16; length++, code <<= 1) {
    int count = huffman->bits[length];
    table->first[length] = at - code;
    table->most[length] = count ? ((code + count) << (16 - length)) - 1 : -1;
    for (int i = 0; i < count; i++, code++, at++) {
      int symbol = huffman->huffval[at];
      int size = symbol & 15, zeros = is_dc ? 0 : symbol >> 4, taken = length + size;
      if (length > LOOK || code >= 1 << length) continue;
      struct entry *entries = table->look + (code << (LOOK - length));
      for (int rest = 0; rest < 1 << (LOOK - length); rest++) {
        entries[rest] = taken > LOOK
          ? (struct entry){0, (uint8_t)length, (int16_t)symbol}
          : (struct entry){(uint8_t)taken, (uint8_t)zeros,
                           (int16_t)(size ? extend(rest >> (LOOK - taken), size) : 0)};
      }
    }
  }
}

/* The buffered bits, with the next one highest. */
struct bits {
  uint64_t next;
  int count;
  /* Stuffed zeros (after a byte of 255, not data) among the bytes that were read. */
  int stuffed;
  const uint8_t *bytes;
};

/* Whether one of these bytes is 255. */
static inline int has_255(uint64_t word) {
  return (word & ~(word + 0x0101010101010101u) & 0x8080808080808080u) != 0;
}

/* Ensures that 56 bits are buffered; returns 0 at a marker. */
static inline int fill(struct bits *bits) {
  uint64_t word;
  memcpy(&word, bits->bytes, 8);
  if (!has_255(word)) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    bits->next |= word >> bits->count;
    bits->bytes += (63 - bits->count) >> 3;
    bits->count |= 56;
    return 1;
  }
  while (bits->count <= 56) {
    uint8_t byte = *bits->bytes++;
    if (byte == 0xff) {
      if (*bits->bytes++ != 0) return 0;
      bits->stuffed++;
    }
    bits->next |= (uint64_t)byte << (56 - bits->count);
    bits->count += 8;
  }
  return 1;
}

/* The entry for a code that, with what follows it, is longer than LOOK bits; `bits` is 0 if the code does
 * not exist. */
static struct entry look_closer(const struct table *table, struct entry found, uint64_t next, int is_dc) {
  int length = found.zeros, symbol = found.value;
  if (length == 0) {
    int32_t code = (int32_t)(next >> 48);
    for (length = LOOK + 1; length <= 16 && code > table->most[length]; length++) {}
    if (length > 16) return (struct entry){0, 0, 0};
    symbol = table->symbols[(table->first[length] + (code >> (16 - length))) & 255];
  }
  int size = symbol & 15;
  int value = size ? extend((int)(next << length >> (64 - size)), size) : 0;
  return (struct entry){(uint8_t)(length + size), (uint8_t)(is_dc ? 0 : symbol >> 4), (int16_t)value};
}

/* Decodes the next code and what follows it; returns 0 if there is none. */
static inline int next_entry(struct bits *bits, const struct table *table, int is_dc, struct entry *entry) {
  if (bits->count < LOOK && !fill(bits)) return 0;
  *entry = table->look[bits->next >> (64 - LOOK)];
  if (__builtin_expect(entry->bits == 0, 0)) {
    /* Code and coefficient have 31 bits at most. */
    if (bits->count < 32 && !fill(bits)) return 0;
    *entry = look_closer(table, *entry, bits->next, is_dc);
    if (entry->bits == 0) return 0;
  }
  bits->next <<= entry->bits;
  bits->count -= entry->bits;
  return 1;
}

/* The bits of a coefficient that is not 0. */
static inline int size_of(int value) { return 32 - __builtin_clz((unsigned int)(value < 0 ? -value : value)); }

/* Reads more bytes, or returns some, to match what decode_mcu_fast in jdhuff.c has read after the same
 * unit, starting at the same byte (`begin`); returns 0 at a marker.
 *
 * decode_mcu_fast checks the number of bits left before each code, and between a code and its coefficient,
 * and reads six bytes if there are 16 or fewer. So what it has read follows from its last check: before the
 * coefficient of the last entry, or before its code if it has no coefficient. */
static inline int read_as_libjpeg(struct bits *bits, const uint8_t *begin, struct entry last) {
  int read = 8 * (int)(bits->bytes - begin - bits->stuffed);
  int place = read - bits->count;
  int looked = place - (last.value != 0 ? size_of(last.value) : last.bits) + 16;
  int wanted = looked < 0 ? 0 : 48 * (looked / 48 + 1);
  if (wanted > read) {
    if (!fill(bits)) return 0;
    read = place + bits->count;
  }
  int back = (read - wanted) / 8;
  uint64_t word;
  memcpy(&word, bits->bytes - 8, 8);
  if (!has_255(word)) {
    bits->bytes -= back;
  } else {
    while (back-- > 0) {
      bits->bytes--;
      if (bits->bytes > begin && bits->bytes[0] == 0 && bits->bytes[-1] == 0xff) bits->bytes--;
    }
  }
  bits->count = wanted - place;
  return 1;
}

/* The maximum bytes of a block, by libjpeg's estimate, and the bytes that are read at once. */
#define BLOCK_BYTES (DCTSIZE2 * 8)
#define AT_ONCE 32

static boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW *units) {
  struct huffman_state *state = (struct huffman_state *)cinfo->entropy;
  const struct tables *tables = cinfo->client_data;
  struct jpeg_source_mgr *source = cinfo->src;
  if (source->bytes_in_buffer < BLOCK_BYTES * (size_t)cinfo->blocks_in_MCU + AT_ONCE ||
      cinfo->unread_marker != 0 || state->pub.insufficient_data)
    return tables->original(cinfo, units);

  struct bits bits = {0, state->bitstate.bits_left, 0, source->next_input_byte};
  if (bits.count > 0) bits.next = (uint64_t)state->bitstate.get_buffer << (64 - bits.count);
  int last_dc[MAX_COMPS_IN_SCAN];
  memcpy(last_dc, state->saved.last_dc_val, sizeof last_dc);

  JCOEF unwanted[DCTSIZE2];
  struct entry entry = {0, 0, 0};
  for (int number = 0; number < cinfo->blocks_in_MCU; number++) {
    JCOEF *block = units ? *units[number] : NULL;
    if (!next_entry(&bits, tables->dc[number], 1, &entry)) goto odd;
    if (tables->dc_needed[number]) {
      int *last = &last_dc[cinfo->MCU_membership[number]];
      *last = (int)((unsigned int)*last + (unsigned int)(int)entry.value);
      if (block) block[0] = (JCOEF)*last;
    }
    const struct table *ac = tables->ac[number];
    if (!block || !tables->ac_needed[number]) block = unwanted;
    for (int at = 1; at < DCTSIZE2; at++) {
      if (!next_entry(&bits, ac, 0, &entry)) goto odd;
      at += entry.zeros;
      /* The order has 16 more entries than a block, all equal to the last, for runs of zeros past the end. */
      block[jpeg_natural_order[at]] = entry.value;
      if (__builtin_expect(entry.value == 0 && entry.zeros != 15, 0)) break;
    }
  }

  if (!read_as_libjpeg(&bits, source->next_input_byte, entry)) goto odd;
  state->bitstate.get_buffer = (bit_buf_type)(bits.count ? bits.next >> (64 - bits.count) : 0);
  state->bitstate.bits_left = bits.count;
  memcpy(state->saved.last_dc_val, last_dc, sizeof last_dc);
  source->bytes_in_buffer -= (size_t)(bits.bytes - source->next_input_byte);
  source->next_input_byte = bits.bytes;
  return TRUE;

odd:
  if (units)
    for (int number = 0; number < cinfo->blocks_in_MCU; number++) memset(units[number], 0, sizeof(JBLOCK));
  return tables->original(cinfo, units);
}

size_t anyrec_huffman_size(void) { return sizeof(struct tables); }

/* Must be called when decompression has started, before a row is read. `memory` must have the size above,
 * be aligned for pointers, and live as long as rows are read. Does nothing unless the case is plain. */
void anyrec_huffman_install(j_decompress_ptr cinfo, void *memory) {
  struct tables *tables = memory;
  if (BIT_BUF_SIZE != 64 || cinfo->progressive_mode || cinfo->arith_code || cinfo->restart_interval != 0 ||
      cinfo->inputctl->has_multiple_scans || cinfo->data_precision != 8)
    return;
  int made = 0;
  for (int is_dc = 0; is_dc < 2; is_dc++) {
    const struct table *of_number[NUM_HUFF_TBLS] = {0};
    for (int number = 0; number < cinfo->blocks_in_MCU; number++) {
      const jpeg_component_info *component = cinfo->cur_comp_info[cinfo->MCU_membership[number]];
      int which = is_dc ? component->dc_tbl_no : component->ac_tbl_no;
      if (which < 0 || which >= NUM_HUFF_TBLS) return;
      const JHUFF_TBL *huffman = is_dc ? cinfo->dc_huff_tbl_ptrs[which] : cinfo->ac_huff_tbl_ptrs[which];
      if (!huffman) return;
      if (!of_number[which]) {
        make_table(&tables->made[made], huffman, is_dc);
        of_number[which] = &tables->made[made++];
      }
      (is_dc ? tables->dc : tables->ac)[number] = of_number[which];
      tables->dc_needed[number] = component->component_needed;
      /* At an eighth of full size, an image consists only of the blocks' means. */
      tables->ac_needed[number] = component->component_needed && component->DCT_scaled_size > 1;
    }
  }
  tables->original = cinfo->entropy->decode_mcu;
  cinfo->client_data = tables;
  cinfo->entropy->decode_mcu = decode_mcu;
}
