//! Builds pages of the ring buffer from records, in the kernel's format.
//!
//! ```
//! use punctual_trace::read::format::PageLayout;
//! use punctual_trace::read::page::Page;
//! use punctual_trace::write::page::PageWriter;
//!
//! let layout = PageLayout::usual(4096);
//! let mut pages = PageWriter::new(layout, Vec::new());
//! pages.push(1_000, &[1, 2, 3, 4])?;
//! let bytes = pages.finish()?;
//! let record = Page::open(&layout, &bytes)?.next_record()?.unwrap();
//! assert_eq!((record.time, record.data()), (1_000, &[1, 2, 3, 4][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Write};

use crate::format::Order;
use crate::format::fields::PageLayout;

const DELTA_BITS: u32 = 27;
const DELTA_LIMIT: u64 = 1 << DELTA_BITS;
/// A time extension has 32 more bits.
const EXTEND_LIMIT: u64 = 1 << 59;
/// Maximum length of content whose length is encoded in the record header.
const SHORT: usize = 28 * 4;
const TIME_EXTEND: u32 = 30;
const PADDING: u32 = 29;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// Builds pages from records.
#[derive(Debug)]
pub struct PageWriter<W> {
    layout: PageLayout,
    out: W,
    page: Vec<u8>,
    time: u64,
    missed: Option<u64>,
    pages: u64,
}

impl<W: Write> PageWriter<W> {
    /// Creates a writer of consecutive pages with that layout.
    pub fn new(layout: PageLayout, out: W) -> Self {
        Self { layout, out, page: Vec::with_capacity(layout.size), time: 0, missed: None, pages: 0 }
    }

    /// Returns the time of the last record.
    pub fn last(&self) -> u64 {
        self.time
    }

    /// Appends a record.
    pub fn push(&mut self, time: u64, content: &[u8]) -> io::Result<()> {
        let length = content.len().next_multiple_of(4).max(4);
        let head = if length > SHORT { 8 } else { 4 };
        let delta = time.wrapping_sub(self.time);
        let extended = delta >= DELTA_LIMIT;
        let whole = head + length + if extended { 8 } else { 0 };
        // The number of missed events follows the last record.
        let reserved = if self.missed.is_some_and(|count| count > 0) { self.layout.long } else { 0 };
        if !self.page.is_empty()
            && (self.page.len() + whole + reserved > self.layout.size || delta >= EXTEND_LIMIT)
        {
            self.flush_page()?;
        }
        if self.page.is_empty() {
            self.start_page(time);
        }
        let mut delta = time.wrapping_sub(self.time);
        if delta >= DELTA_LIMIT {
            self.head(TIME_EXTEND, delta % DELTA_LIMIT);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        if length > SHORT {
            self.head(0, delta);
            self.word(length as u32 + 4);
        } else {
            self.head(length as u32 / 4, delta);
        }
        self.page.extend(content);
        let padded = self.page.len() + length - content.len();
        self.page.resize(padded, 0);
        self.time = time;
        Ok(())
    }

    /// Records that events are missing here: `count`, or an unknown number if it is 0.
    pub fn missed(&mut self, count: u64) -> io::Result<()> {
        self.flush_page()?;
        let before = self.missed.unwrap_or(0);
        // The sum of two counts of a damaged file may overflow.
        self.missed = Some(before.saturating_add(count));
        Ok(())
    }

    fn start_page(&mut self, time: u64) {
        self.page.resize(self.layout.data, 0);
        self.time = time;
        let at = self.layout.timestamp;
        self.page[at..at + 8].copy_from_slice(&bytes(self.layout.order, time, 8)[..8]);
    }

    fn word(&mut self, value: u32) {
        let bytes = bytes(self.layout.order, value.into(), 4);
        self.page.extend(&bytes[..4]);
    }

    fn head(&mut self, kind: u32, delta: u64) {
        let delta = delta as u32;
        match self.layout.order {
            Order::Little => self.word(delta << 5 | kind),
            Order::Big => self.word(kind << DELTA_BITS | delta),
        }
    }

    fn flush_page(&mut self) -> io::Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let PageLayout { order, commit, long, size, data, .. } = self.layout;
        let mut used = (self.page.len() - data) as u64;
        match self.missed.take() {
            Some(0) => used |= MISSED,
            Some(count) => {
                used |= MISSED | MISSED_STORED;
                self.page.extend(&bytes(order, count, long)[..long]);
            }
            None if self.page.len() + 4 <= size => {
                // As in the kernel, the rest of the page is marked as padding, outside the size
                // that counts as used.
                self.head(PADDING, 0);
            }
            None => {}
        }
        self.page[commit..commit + long].copy_from_slice(&bytes(order, used, long)[..long]);
        self.page.resize(size, 0);
        self.out.write_all(&self.page)?;
        self.pages += 1;
        self.page.clear();
        Ok(())
    }

    /// Returns the number of pages written.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Writes the current page, even if it is not full; without records, only if events are missing
    /// after the last one.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.page.is_empty() && self.missed.is_some() {
            self.start_page(self.time);
        }
        self.flush_page()?;
        self.out.flush()
    }

    /// Writes the last page and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }
}

/// Encodes a number in the first `size` bytes.
pub(crate) fn bytes(order: Order, value: u64, size: usize) -> [u8; 8] {
    match order {
        Order::Little => value.to_le_bytes(),
        Order::Big => (value << (64 - 8 * size as u32)).to_be_bytes(),
    }
}
