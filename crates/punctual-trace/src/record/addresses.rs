//! Kernel addresses in recorded events, hidden from a user without permission to see them.
//!
//! The tracer stores pointers as they are, regardless of `kernel.kptr_restrict`. If
//! `/proc/kallsyms` shows no addresses to the caller, every pointer into the kernel is replaced by
//! a number that is the same for the same pointer: the analysis compares pointers of timers, and
//! never dereferences them.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_files::Directory;

use super::error::RecordError;
use crate::format::fields::{EventFormat, Field, PageLayout, Shape};
use crate::format::page::{Page, PageError};

/// The half of the address space that belongs to the kernel on 64-bit processors.
const KERNEL: u64 = 0xffff << 48;
/// Larger numbers are negative error codes.
const ERRORS: u64 = u64::MAX - 4095;
/// Size of a pointer.
const WORD: usize = size_of::<u64>();

/// Returns whether a text in the format of `/proc/kallsyms` shows addresses; otherwise they are 0.
pub(super) fn are_shown(symbols: &[u8]) -> bool {
    symbols.split(|&byte| byte == b'\n').any(is_shown)
}

/// Returns whether a line of `/proc/kallsyms` has an address.
pub(super) fn is_shown(line: &[u8]) -> bool {
    line.iter().take_while(|byte| byte.is_ascii_hexdigit()).any(|&byte| byte != b'0')
}

/// Replaces the pointers into the kernel in these page files.
pub(super) fn hide(
    files: &[String],
    formats: &[EventFormat],
    layout: &PageLayout,
    directory: &Directory,
) -> Result<(), RecordError> {
    // Random for each recording, so that equal numbers in two recordings reveal nothing.
    let key = std::hash::RandomState::new().hash_one(std::process::id());
    let fields: HashMap<u16, Vec<&Field>> = formats
        .iter()
        .map(|format| (format.id, format.fields.iter().filter(|field| may_point(field)).collect()))
        .collect();
    for name in files {
        let hidden = hide_in(directory, Path::new(name), &fields, layout, key);
        hidden.map_err(|error| RecordError::output(directory.path(), &directory.path().join(name), error))?;
    }
    Ok(())
}

/// Returns whether a field can be one or several pointers.
fn may_point(field: &Field) -> bool {
    let is_several = matches!(field.shape, Shape::Array(_)) && usize::from(field.size).is_multiple_of(WORD);
    !field.signed && (usize::from(field.size) == WORD && field.shape == Shape::Plain || is_several)
}

fn hide_in(
    directory: &Directory,
    name: &Path,
    fields: &HashMap<u16, Vec<&Field>>,
    layout: &PageLayout,
    key: u64,
) -> io::Result<()> {
    let file = directory.open_file(name, true)?;
    let count = file.metadata()?.len() / layout.size as u64;
    let mut bytes = vec![0; layout.size];
    for at in (0..count).map(|page| page * layout.size as u64) {
        file.read_exact_at(&mut bytes, at)?;
        let found = pointers(&bytes, fields, layout).map_err(damaged)?;
        for &(offset, pointer) in &found {
            bytes[offset..offset + WORD].copy_from_slice(&((pointer ^ key) & !KERNEL).to_ne_bytes());
        }
        if !found.is_empty() {
            file.write_all_at(&bytes, at)?;
        }
    }
    Ok(())
}

/// Returns the pointers into the kernel in a page, each with its offset.
fn pointers(
    bytes: &[u8],
    fields: &HashMap<u16, Vec<&Field>>,
    layout: &PageLayout,
) -> Result<Vec<(usize, u64)>, PageError> {
    let mut page = Page::open(layout, bytes)?;
    let mut found = Vec::new();
    while let Some(record) = page.next_record()? {
        let data = record.data();
        let Some(id) = data.first_chunk().copied().map(u16::from_ne_bytes) else { continue };
        for field in fields.get(&id).into_iter().flatten() {
            let begin = usize::from(field.offset).min(data.len());
            let end =
                if field.size == 0 { data.len() } else { (begin + usize::from(field.size)).min(data.len()) };
            for (index, word) in data[begin..end].chunks_exact(WORD).enumerate() {
                let value = u64::from_ne_bytes(word.try_into().expect("a chunk has eight bytes"));
                if (KERNEL..ERRORS).contains(&value) {
                    found.push((record.offset + begin + index * WORD, value));
                }
            }
        }
    }
    Ok(found)
}

fn damaged(error: PageError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page_writer::PageWriter;

    const FORMAT: &str = "name: hrtimer_start\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:void * uaddr;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:s64 expires;\toffset:24;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[];\toffset:32;\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n";

    #[test]
    fn hides_kernel_addresses() {
        assert!(are_shown(b"ffffffff81000000 T _text\n"));
        assert!(!are_shown(b"0000000000000000 T _text\n0000000000000000 t dl_task_timer\n"));
        assert!(!are_shown(b""));
    }

    #[test]
    fn replaces_equal_kernel_pointers_by_equal_numbers() {
        const TIMER: u64 = 0xffff_8881_0123_4567;
        const USER: u64 = 0x7fff_1234_5678;
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let layout = PageLayout::usual(4096);
        let mut pages = PageWriter::new(layout, directory.create_file(Path::new("pages")).unwrap());
        let error = u64::MAX - 10;
        for words in [[TIMER, USER, TIMER, TIMER], [TIMER, USER, error, error]] {
            let mut record = vec![7, 0, 0, 0, 9, 0, 0, 0];
            record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            pages.push(1, &record).unwrap();
        }
        pages.finish().unwrap();
        let format = EventFormat::parse("timer", FORMAT.as_bytes()).unwrap();
        hide(&["pages".into()], &[format], &layout, &directory).unwrap();

        let bytes = directory.read(Path::new("pages")).unwrap();
        let mut page = Page::open(&layout, &bytes).unwrap();
        let mut records = Vec::new();
        while let Some(record) = page.next_record().unwrap() {
            let words = record.data()[8..].chunks_exact(8);
            records.push(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect::<Vec<_>>());
        }
        let hidden = records[0][0];
        assert!(hidden < KERNEL && hidden != TIMER & !KERNEL, "{hidden:x}");
        // The signed time stays; the last argument is also a pointer.
        assert_eq!(records, [[hidden, USER, TIMER, hidden], [hidden, USER, error, error]]);
    }
}
