//! Pages of the kernel's ring buffer: from bytes to records with absolute times.
//!
//! A page begins with its time, the size of its used part and whether events before it were lost.
//! Events follow, each with the time since the previous one. Nothing is copied: a record is a slice
//! of the page.
//!
//! ```
//! use punctual_trace::read::format::PageLayout;
//! use punctual_trace::read::page::Page;
//!
//! let mut bytes = vec![0; 4096];
//! bytes[..8].copy_from_slice(&1_000u64.to_ne_bytes()); // the time of the page
//! bytes[8..16].copy_from_slice(&8u64.to_ne_bytes()); // eight bytes of it are used
//! bytes[16..20].copy_from_slice(&(5u32 << 5 | 1).to_ne_bytes()); // 5 ns later, one word of content:
//! bytes[20..24].copy_from_slice(&[1, 2, 3, 4]);
//! # if cfg!(target_endian = "big") { return Ok(()) }
//!
//! let mut page = Page::open(&PageLayout::usual(4096), &bytes)?;
//! let record = page.next_record()?.unwrap();
//! assert_eq!((record.time, record.data()), (1_005, &[1, 2, 3, 4][..]));
//! assert!(page.next_record()?.is_none());
//! # Ok::<(), punctual_trace::read::page::PageError>(())
//! ```

use super::Order;
use super::fields::PageLayout;

const LENGTH_MASK: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

const DELTA_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Absolute times in a page have 59 bits; the upper bits are those of the preceding time.
const STAMP_BITS: u32 = 59;

/// An error in a page, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the page: {problem}")]
#[non_exhaustive]
pub struct PageError {
    /// The offset in bytes from the start of the page.
    pub offset: usize,
    /// The error.
    pub problem: PageProblem,
}

/// The errors of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageProblem {
    /// The page is shorter than its header.
    #[error("the page ends before its header does")]
    NoHeader,
    /// The header claims more bytes than the page has.
    #[error("the page claims {used} used bytes, but has room for {room}")]
    Overlong {
        /// The number of bytes it claims.
        used: u64,
        /// The number of bytes there are.
        room: u64,
    },
    /// An event extends beyond the used part of the page.
    #[error("an event claims {length} bytes, but {left} are left in the page")]
    EventTooLong {
        /// The number of bytes it claims.
        length: u64,
        /// The number of remaining bytes.
        left: u64,
    },
    /// An event claims to be empty.
    #[error("an event claims to have no content")]
    EventTooShort,
}

/// Events lost before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// An unknown number.
    Some,
    /// This many.
    Count(u64),
}

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The time to which the events' deltas are added.
    pub time: u64,
    /// The end of the used part of the page.
    pub end: usize,
    /// The events lost before it.
    pub missed: Option<Missed>,
}

impl Header {
    /// Reads the header of a page.
    pub fn read(layout: &PageLayout, page: &[u8]) -> Result<Self, PageError> {
        let short = PageError { offset: page.len(), problem: PageProblem::NoHeader };
        let time = layout.order.u64(page, layout.timestamp).ok_or(short)?;
        let commit = match layout.long {
            4 => layout.order.u32(page, layout.commit).map(u64::from),
            _ => layout.order.u64(page, layout.commit),
        };
        let commit = commit.ok_or(short)?;
        let used = commit & LENGTH_MASK;
        let room = page.len().min(layout.size).checked_sub(layout.data).ok_or(short)?;
        if used > room as u64 {
            let problem = PageProblem::Overlong { used, room: room as u64 };
            return Err(PageError { offset: layout.commit, problem });
        }
        let end = layout.data + used as usize;
        let missed = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => None,
            (true, false) => Some(Missed::Some),
            // The count follows the last event if there was room.
            (true, true) => match layout.long {
                4 => layout.order.u32(page, end).map(u64::from),
                _ => layout.order.u64(page, end),
            }
            .map_or(Some(Missed::Some), |count| Some(Missed::Count(count))),
        };
        Ok(Self { time, end, missed })
    }

    /// Returns whether the kernel has not written it: no page of a recording is empty, and none has
    /// a time as early as the boot.
    pub(crate) fn is_blank(&self, layout: &PageLayout) -> bool {
        self.time == 0 && self.end == layout.data && self.missed.is_none()
    }
}

/// One event as the kernel wrote it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The time by the trace clock.
    pub time: u64,
    /// The offset of its content in the page.
    pub offset: usize,
    /// The page from there on: numbers at its end are read with one load if the bytes after them
    /// may also be read.
    pub(crate) window: &'a [u8],
    pub(crate) length: usize,
}

impl<'a> Record<'a> {
    /// Creates a record by itself.
    pub fn new(time: u64, data: &'a [u8]) -> Self {
        Self { time, offset: 0, window: data, length: data.len() }
    }

    /// Returns its content.
    pub fn data(&self) -> &'a [u8] {
        &self.window[..self.length]
    }

    /// Returns the length of its content.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }
}

/// A position in a page that does not borrow the page between records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    at: usize,
    end: usize,
    time: u64,
}

impl Cursor {
    pub(crate) fn new(layout: &PageLayout, header: &Header) -> Self {
        Self { at: layout.data, end: header.end, time: header.time }
    }

    #[inline(always)]
    fn word(&self, order: Order, page: &[u8], at: usize) -> Result<u32, PageError> {
        if at + 4 > self.end {
            return Err(self.too_long(8));
        }
        order.u32(page, at).ok_or_else(|| self.too_long(8))
    }

    #[cold]
    fn too_long(&self, length: u64) -> PageError {
        let left = (self.end - self.at) as u64;
        PageError { offset: self.at, problem: PageProblem::EventTooLong { length, left } }
    }

    /// Returns the next record of `page`, which must be the page that the cursor was created for;
    /// specialized for one byte order if `order` is a constant.
    #[inline(always)]
    pub(crate) fn next<'a>(&mut self, order: Order, page: &'a [u8]) -> Result<Option<Record<'a>>, PageError> {
        while self.at < self.end {
            let head = self.word(order, page, self.at)?;
            let (kind, delta) = match order {
                Order::Little => (head & 31, u64::from(head >> 5)),
                Order::Big => (head >> DELTA_BITS, u64::from(head & ((1 << DELTA_BITS) - 1))),
            };
            // The common case.
            let (start, length, whole) = if (1..PADDING).contains(&kind) {
                let length = kind as usize * 4;
                (self.at + 4, length, 4 + length)
            } else {
                match self.rare(order, page, kind, delta)? {
                    Some(found) => found,
                    None => continue,
                }
            };
            if whole > self.end - self.at {
                return Err(self.too_long(whole as u64));
            }
            self.time = self.time.wrapping_add(delta);
            self.at += whole;
            return Ok(Some(Record { time: self.time, offset: start, window: &page[start..], length }));
        }
        Ok(None)
    }

    /// Decodes a record with its length in a separate word: returns the start and length of its
    /// content, and the record. Or skips an event that is not a record.
    fn rare(
        &mut self,
        order: Order,
        page: &[u8],
        kind: u32,
        delta: u64,
    ) -> Result<Option<(usize, usize, usize)>, PageError> {
        match kind {
            0 => {
                // The length includes its own word.
                let length = u64::from(self.word(order, page, self.at + 4)?);
                if length < 4 {
                    return Err(PageError { offset: self.at, problem: PageProblem::EventTooShort });
                }
                let whole = 4 + length.next_multiple_of(4);
                if whole > (self.end - self.at) as u64 {
                    return Err(self.too_long(whole));
                }
                return Ok(Some((self.at + 8, length as usize - 4, whole as usize)));
            }
            PADDING if delta == 0 => self.at = self.end,
            PADDING => {
                // A discarded event. The kernel changes its delta of 0 to 1 to distinguish it from
                // the end.
                let whole = 4 + u64::from(self.word(order, page, self.at + 4)?);
                if whole > (self.end - self.at) as u64 {
                    return Err(self.too_long(whole));
                }
                if delta != 1 {
                    self.time = self.time.wrapping_add(delta);
                }
                self.at += whole as usize;
            }
            kind => {
                let time = u64::from(self.word(order, page, self.at + 4)?) << DELTA_BITS | delta;
                self.time = if kind == TIME_EXTEND {
                    self.time.wrapping_add(time)
                } else {
                    debug_assert_eq!(kind, TIME_STAMP);
                    absolute(time, self.time)
                };
                self.at += 8;
            }
        }
        Ok(None)
    }
}

/// Completes an absolute time with the upper bits of the preceding time.
fn absolute(time: u64, before: u64) -> u64 {
    let high = before >> STAMP_BITS << STAMP_BITS;
    let time = time | high;
    if high != 0 && time < before { time.wrapping_add(1 << STAMP_BITS) } else { time }
}

/// A page with a read position.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    header: Header,
    order: Order,
    bytes: &'a [u8],
    cursor: Cursor,
}

impl<'a> Page<'a> {
    /// Opens the page at the start of `bytes`.
    pub fn open(layout: &PageLayout, bytes: &'a [u8]) -> Result<Self, PageError> {
        let header = Header::read(layout, bytes)?;
        Ok(Self { header, order: layout.order, bytes, cursor: Cursor::new(layout, &header) })
    }

    /// Returns the header of the page.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the next record.
    ///
    /// After an error the following records cannot be delimited: every further call returns the
    /// same error.
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>, PageError> {
        self.cursor.next(self.order, self.bytes)
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
