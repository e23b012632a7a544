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
//! In entropy-coded data, a byte FF is followed by 00 or is a restart marker (D0 to D7), so the
//! next segment can be found without decoding.

/// The dimensions that a JPEG's frame header declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub width: u16,
    pub height: u16,
}

/// What the segments of a JPEG declare together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Survey<'a> {
    /// The end-of-image marker is present, so the bytes were not truncated.
    pub has_end: bool,
    pub scans: u64,
    /// Blocks in all scans. A block counts once for every scan that includes its component.
    pub visits: u64,
    /// A component is in no scan.
    pub misses_scans: bool,
    /// The first EXIF data.
    pub exif: Option<&'a [u8]>,
}

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;
const APPLICATION_1: u8 = 0xE1;

/// The frame header, if these bytes contain it.
pub(crate) fn frame_header(jpeg: &[u8]) -> Option<FrameHeader> {
    let (_, payload) = segments(jpeg)?.find(|(marker, _)| is_frame_header(*marker))?;
    let frame = Frame::parse(payload)?;
    Some(FrameHeader { width: frame.width, height: frame.height })
}

/// Walks all segments.
pub(super) fn survey(jpeg: &[u8]) -> Survey<'_> {
    let mut survey = Survey::default();
    let mut frame: Option<Frame<'_>> = None;
    let mut seen = [false; 256];
    for (marker, payload) in segments(jpeg).into_iter().flatten() {
        match marker {
            END_OF_IMAGE => survey.has_end = true,
            APPLICATION_1 if survey.exif.is_none() => survey.exif = payload.strip_prefix(b"Exif\0\0"),
            START_OF_SCAN => {
                survey.scans += 1;
                let ids = scan_components(payload);
                if let Some(frame) = &frame {
                    survey.visits =
                        survey.visits.saturating_add(ids.clone().map(|id| frame.blocks(id)).sum());
                }
                for id in ids {
                    if let Some(seen) = seen.get_mut(usize::from(id)) {
                        *seen = true;
                    }
                }
            }
            _ if is_frame_header(marker) && frame.is_none() => frame = Frame::parse(payload),
            _ => {}
        }
    }
    let missed = |[id, _, _]: &[u8; 3]| seen.get(usize::from(*id)) == Some(&false);
    survey.misses_scans = frame.is_some_and(|frame| frame.components.iter().any(missed));
    survey
}

fn is_frame_header(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}

/// The ids of the components in a scan.
fn scan_components(payload: &[u8]) -> impl Iterator<Item = u8> + Clone {
    let (count, ids) = payload.split_first().unwrap_or((&0, &[]));
    ids.chunks_exact(2).take(usize::from(*count)).filter_map(|pair| pair.first().copied())
}

/// The contents of a frame header.
struct Frame<'a> {
    width: u16,
    height: u16,
    /// Id, sampling factors (horizontal in the upper half) and quantization table of each
    /// component.
    components: &'a [[u8; 3]],
}

impl<'a> Frame<'a> {
    fn parse(payload: &'a [u8]) -> Option<Self> {
        let (&[_precision, height_high, height_low, width_high, width_low, count], components) =
            payload.split_first_chunk::<6>()?;
        let (components, _) = components.as_chunks::<3>();
        Some(Frame {
            width: u16::from_be_bytes([width_high, width_low]),
            height: u16::from_be_bytes([height_high, height_low]),
            components: components.get(..usize::from(count))?,
        })
    }

    /// 8x8 blocks of the component with this id. libjpeg renames components with duplicate ids, so
    /// an unknown id is counted as the largest component.
    fn blocks(&self, id: u8) -> u64 {
        let factors = |[_, factors, _]: &[u8; 3]| (u64::from(factors >> 4), u64::from(factors & 15));
        let all = self.components.iter().map(factors);
        let horizontal = all.clone().map(|(h, _)| h).max().unwrap_or(0).max(1);
        let vertical = all.map(|(_, v)| v).max().unwrap_or(0).max(1);
        let (h, v) = match self.components.iter().find(|[own, _, _]| *own == id) {
            Some(component) => factors(component),
            None => (horizontal, vertical),
        };
        // At most 2^13 * 2^13 units of 225 blocks each, far below 2^64.
        let units =
            u64::from(self.width).div_ceil(8 * horizontal) * u64::from(self.height).div_ceil(8 * vertical);
        units * h * v
    }
}

/// Markers with their payloads, up to the end of the bytes. `None` if the bytes are not a JPEG.
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
/// entropy-coded data, fill bytes and anything else between segments, as other readers do.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let mut rest = bytes;
    loop {
        let at = memchr::memchr(0xFF, rest)?;
        rest = rest.get(at + 1..)?;
        match rest.split_first()? {
            // Markers below C0 have no meaning; libjpeg skips them when it searches for a restart
            // marker.
            (0x00..=0xBF | 0xD0..=START_OF_IMAGE, after) => rest = after,
            (0xFF, _) => {}
            (&marker, after) => return Some((marker, after)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// The markers of a 17x9 JPEG with 4:2:0 chroma: an application segment that looks like a frame
    /// header, fill bytes, stuffed bytes and restart markers.
    const JPEG: &[u8] = b"\xFF\xD8\
        \xFF\xE1\x00\x0A\xFF\xC0\x00\x08\xFF\xD9\x00\x00\
        \xFF\xFF\xC2\x00\x11\x08\x00\x09\x00\x11\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\
        \xFF\xDA\x00\x05\x01\x01\x00\x12\xFF\x00\xFF\xD0\x34\
        \xFF\xDA\x00\x07\x02\x02\x00\x03\x00\x56\
        \xFF\xD9 trailing";

    #[test]
    fn frame_header_is_found_behind_other_segments() {
        assert_eq!(frame_header(JPEG), Some(FrameHeader { width: 17, height: 9 }));
    }

    #[test]
    fn survey_counts_scans_and_the_blocks_they_visit() {
        let survey = survey(JPEG);
        // Two units of 16x16: eight blocks of luminance, then two of each chroma.
        assert_eq!((survey.scans, survey.visits), (2, 12));
        assert!(survey.has_end && !survey.misses_scans);
    }

    #[test]
    fn component_without_a_scan_is_missed() {
        let mut other = JPEG.to_vec();
        let last = other.windows(2).rposition(|pair| pair == b"\x03\x00").unwrap();
        other[last] = 2;
        assert!(survey(&other).misses_scans);
    }

    #[test]
    fn scans_behind_a_meaningless_marker_are_counted() {
        let mut hidden = JPEG.to_vec();
        let scan = hidden.windows(2).position(|pair| pair == b"\xFF\xDA").unwrap();
        hidden.splice(scan..scan, *b"\xFF\x05\x00\x40");
        assert_eq!(survey(&hidden).scans, 2);
    }

    #[test]
    fn first_exif_data_is_found() {
        let exif = b"\xFF\xD8\xFF\xE1\x00\x04ab\xFF\xE1\x00\x0AExif\0\0MM\xFF\xE1\x00\x0AExif\0\0II";
        assert_eq!(survey(exif).exif, Some(&b"MM"[..]));
    }

    #[test]
    fn end_is_seen_only_when_it_is_there() {
        let end = JPEG.len() - b" trailing".len();
        for length in 0..=JPEG.len() {
            assert_eq!(survey(&JPEG[..length]).has_end, length >= end, "{length} bytes");
        }
    }
}
