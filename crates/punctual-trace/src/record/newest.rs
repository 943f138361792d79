//! The newest events: the time span that all buffers cover after the kernel has overwritten their
//! oldest events.
//!
//! A busy CPU fills its buffer sooner than others, so its oldest event is younger than theirs.
//! Earlier events of the others are removed: without that CPU's events, an explanation of them
//! would be wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_files::Directory;

use super::error::RecordError;
use crate::format::fields::PageLayout;
use crate::format::page::{Page, PageError};
use crate::format::page_writer::PageWriter;

/// The number of bytes moved to the front of a file at a time.
const STEP: usize = 1 << 20;

/// Removes the events from these page files that are older than the oldest event of any file that
/// has lost its beginning. The result is as if the recording had begun at that time.
pub(super) fn align(files: &[String], layout: &PageLayout, directory: &Directory) -> Result<(), RecordError> {
    let failed = |name: &str, error| {
        let directory = directory.path();
        RecordError::output(directory, &directory.join(name), error)
    };
    let mut pages = Vec::new();
    for name in files {
        let file = directory.open_file(Path::new(name), true).map_err(|error| failed(name, error))?;
        let count = file.metadata().map_err(|error| failed(name, error))?.len() / layout.size as u64;
        if count > 0 {
            pages.push((name, Pages { file, count, layout }));
        }
    }
    let mut begin = None;
    for (name, pages) in &pages {
        let bytes = pages.read(0).map_err(|error| failed(name, error))?;
        let first = Page::open(layout, &bytes).map_err(damaged).map_err(|error| failed(name, error))?;
        if first.header().missed.is_some() {
            begin = begin.max(Some(first.header().time));
        }
    }
    let Some(begin) = begin else { return Ok(()) };
    pages.iter().try_for_each(|(name, pages)| pages.begin_at(begin).map_err(|error| failed(name, error)))
}

fn damaged(error: PageError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// A file of pages.
struct Pages<'a> {
    file: File,
    count: u64,
    layout: &'a PageLayout,
}

impl Pages<'_> {
    fn read(&self, page: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.layout.size];
        self.file.read_exact_at(&mut bytes, page * self.layout.size as u64)?;
        Ok(bytes)
    }

    fn time(&self, page: u64) -> io::Result<u64> {
        let bytes = self.read(page)?;
        Ok(Page::open(self.layout, &bytes).map_err(damaged)?.header().time)
    }

    /// Removes the events before `begin`.
    fn begin_at(&self, begin: u64) -> io::Result<()> {
        let (mut from, mut to) = (0, self.count - 1);
        // The last page that begins by then; the first if none does.
        while from < to {
            let middle = from + (to - from).div_ceil(2);
            if self.time(middle)? <= begin { from = middle } else { to = middle - 1 }
        }
        match self.rest_of(from, begin)? {
            Some(page) => {
                self.move_to_front(from)?;
                self.file.write_all_at(&page, 0)
            }
            None => self.move_to_front(from + 1),
        }
    }

    /// Returns a page without the events before `begin`; `None` if it contains no others.
    fn rest_of(&self, page: u64, begin: u64) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.read(page)?;
        let mut page = Page::open(self.layout, &bytes).map_err(damaged)?;
        let mut rest = PageWriter::new(*self.layout, Vec::with_capacity(self.layout.size));
        while let Some(record) = page.next_record().map_err(damaged)? {
            if record.time >= begin {
                rest.push(record.time, record.data())?;
            }
        }
        let rest = rest.finish()?;
        Ok((!rest.is_empty()).then_some(rest))
    }

    fn move_to_front(&self, from: u64) -> io::Result<()> {
        let size = self.layout.size as u64;
        let (mut at, end) = (from * size, self.count * size);
        let mut to = 0;
        let mut bytes = vec![0; STEP];
        while from > 0 && at < end {
            let count = STEP.min((end - at) as usize);
            self.file.read_exact_at(&mut bytes[..count], at)?;
            self.file.write_all_at(&bytes[..count], to)?;
            (at, to) = (at + count as u64, to + count as u64);
        }
        if from > 0 { self.file.set_len(end - from * size) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Order;
    use crate::format::page::Missed;

    /// Creates a file with two events per page, at these times and 30 later, after `lost` others.
    fn file(directory: &Directory, name: &str, times: &[u64], lost: Option<u64>) -> String {
        let file = directory.create_file(Path::new(name)).unwrap();
        let mut pages = PageWriter::new(PageLayout::usual(4096), file);
        if let Some(lost) = lost {
            pages.missed(lost).unwrap();
        }
        for &time in times {
            pages.push(time, &[1, 2, 3, 4]).unwrap();
            pages.push(time + 30, &[0; 200]).unwrap();
            pages.flush().unwrap();
        }
        pages.finish().unwrap();
        name.to_owned()
    }

    /// Returns the times of the events of a file, and the loss that it reports before the first.
    fn read(directory: &Directory, name: &str) -> (Vec<u64>, Option<Missed>) {
        let layout = PageLayout { order: Order::NATIVE, ..PageLayout::usual(4096) };
        let bytes = directory.read(Path::new(name)).unwrap();
        let (mut times, mut missed) = (Vec::new(), None);
        for (index, bytes) in bytes.chunks(4096).enumerate() {
            let mut page = Page::open(&layout, bytes).unwrap();
            if index == 0 {
                missed = page.header().missed;
            } else {
                assert_eq!(page.header().missed, None);
            }
            while let Some(record) = page.next_record().unwrap() {
                times.push(record.time);
            }
        }
        (times, missed)
    }

    #[test]
    fn starts_where_all_cpus_have_events() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let files = [
            file(&directory, "long", &[100, 200, 300, 400], Some(7)),
            file(&directory, "short", &[320, 500], Some(9)),
            file(&directory, "whole", &[10, 20, 600], None),
            file(&directory, "late", &[550], None),
            file(&directory, "early", &[200, 250], None),
            file(&directory, "empty", &[], None),
        ];
        align(&files, &PageLayout::usual(4096), &directory).unwrap();
        let left = files.each_ref().map(|name| read(&directory, name));
        let expected: [&[u64]; 6] =
            [&[330, 400, 430], &[320, 350, 500, 530], &[600, 630], &[550, 580], &[], &[]];
        assert_eq!(left, expected.map(|times| (times.to_vec(), None)));
    }

    #[test]
    fn keeps_intervals_with_start() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let files = [file(&directory, "a", &[1, 2], None), file(&directory, "b", &[5], None)];
        align(&files, &PageLayout::usual(4096), &directory).unwrap();
        let left = files.each_ref().map(|name| read(&directory, name));
        assert_eq!(left, [(vec![1, 31, 2, 32], None), (vec![5, 35], None)]);
    }
}
