//! The marker segments of a JPEG, without its entropy-coded data.
//!
//! ```text
//! FF D8                                start of image
//! FF marker, length u16 BE, payload    segments; length counts itself
//! FF C0..CF (not C4, C8, CC)           frame header: precision u8, height u16, width u16,
//!                                      component count u8, per component id, factors, table
//! FF DA                                scan header, followed by entropy-coded data
//! FF D9                                end of image
//! ```
//!
//! In entropy-coded data a byte FF is followed by 00 or is a restart marker (D0 to D7), so the
//! next segment is found without decoding.

/// What a JPEG's frame header declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub width: u16,
    pub height: u16,
    pub progressive: bool,
    pub components: u8,
    /// The largest vertical sampling factor.
    pub vertical: u64,
    /// 8x8 blocks of all components together.
    pub blocks: u64,
}

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;

/// The frame header, if it lies in these bytes.
pub(super) fn frame_header(jpeg: &[u8]) -> Option<FrameHeader> {
    segments(jpeg)?
        .find(|(marker, _)| matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC))
        .and_then(|(marker, payload)| parse_frame_header(marker, payload))
}

/// How many components the first scan holds.
pub(super) fn first_scan_components(jpeg: &[u8]) -> Option<u8> {
    let (_, payload) = segments(jpeg)?.find(|(marker, _)| *marker == START_OF_SCAN)?;
    payload.first().copied()
}

/// Whether the end-of-image marker is there, so that the bytes were not cut short.
pub(super) fn has_end(jpeg: &[u8]) -> bool {
    segments(jpeg).is_some_and(|mut all| all.any(|(marker, _)| marker == END_OF_IMAGE))
}

fn parse_frame_header(marker: u8, payload: &[u8]) -> Option<FrameHeader> {
    let (&[_precision, height_high, height_low, width_high, width_low, count], components) =
        payload.split_first_chunk::<6>()?;
    let width = u16::from_be_bytes([width_high, width_low]);
    let height = u16::from_be_bytes([height_high, height_low]);
    let (components, _) = components.as_chunks::<3>();
    let factors = components
        .get(..usize::from(count))?
        .iter()
        .map(|[_, factors, _]| (u64::from(factors >> 4), u64::from(factors & 15)));
    let horizontal = factors.clone().map(|(h, _)| h).max().unwrap_or(0).max(1);
    let vertical = factors.clone().map(|(_, v)| v).max().unwrap_or(0).max(1);
    // At most 2^13 * 2^13 units of 255 components with 225 blocks each: far below 2^64.
    let units = u64::from(width).div_ceil(8 * horizontal) * u64::from(height).div_ceil(8 * vertical);
    Some(FrameHeader {
        width,
        height,
        progressive: matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE),
        components: count,
        vertical,
        blocks: units * factors.map(|(h, v)| h * v).sum::<u64>(),
    })
}

/// Markers with their payloads, up to the end of the bytes. None if they are no JPEG.
fn segments(jpeg: &[u8]) -> Option<impl Iterator<Item = (u8, &[u8])>> {
    let mut rest = jpeg.strip_prefix(&[0xFF, START_OF_IMAGE])?;
    Some(std::iter::from_fn(move || {
        let (marker, after) = next_marker(rest)?;
        if marker == END_OF_IMAGE {
            rest = &[];
            return Some((marker, rest));
        }
        let (length, _) = after.split_first_chunk::<2>()?;
        let (segment, following) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = following;
        Some((marker, segment.get(2..)?))
    }))
}

/// The next marker that starts a segment or ends the image, and what follows it. Skips
/// entropy-coded data, fill bytes and whatever else is between segments, as other readers do.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let mut rest = bytes;
    loop {
        let at = memchr::memchr(0xFF, rest)?;
        rest = rest.get(at + 1..)?;
        match rest.split_first()? {
            (0x00 | 0x01 | 0xD0..=START_OF_IMAGE, after) => rest = after,
            (0xFF, _) => {}
            (&marker, after) => return Some((marker, after)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A JPEG of 17x9 pixels with 4:2:0 chroma as far as markers go: an application segment that
    /// looks like a frame header, fill bytes, stuffed and restart bytes.
    const JPEG: &[u8] = b"\xFF\xD8\
        \xFF\xE1\x00\x0A\xFF\xC0\x00\x08\xFF\xD9\x00\x00\
        \xFF\xFF\xC2\x00\x11\x08\x00\x09\x00\x11\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\
        \xFF\xDA\x00\x03\x01\x12\xFF\x00\xFF\xD0\x34\
        \xFF\xD9 trailing";

    #[test]
    fn frame_header_is_found_behind_other_segments() {
        let header = frame_header(JPEG).unwrap();
        assert_eq!((header.width, header.height), (17, 9));
        assert_eq!((header.progressive, header.components, header.vertical), (true, 3, 2));
        // Two units of 16x16, six blocks each.
        assert_eq!(header.blocks, 12);
        assert_eq!(first_scan_components(JPEG), Some(1));
    }

    #[test]
    fn end_is_seen_only_when_it_is_there() {
        let end = JPEG.len() - b" trailing".len();
        for length in 0..=JPEG.len() {
            assert_eq!(has_end(&JPEG[..length]), length >= end, "{length} bytes");
        }
    }
}
