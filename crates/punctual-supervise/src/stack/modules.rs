//! The files whose code a process runs: their unwind tables, and the names of their functions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use addr2line::Loader;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use object::elf::PF_X;
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};
use punctual_report::escape::Printable;
use rustix::fs::{MemfdFlags, memfd_create};

use super::Function;

/// The maximum length of a program or a library, with its debug information.
const FILE_LIMIT: u64 = 1 << 30;
/// The maximum total length of the copied sections: a file may be mapped any number of times.
const SECTIONS_LIMIT: usize = 2 << 30;

/// A mapped file.
#[derive(Debug)]
struct Mapped {
    path: String,
    range: Range<u64>,
    /// The difference between an address and its address in the file.
    bias: u64,
    sections: Sections,
}

#[derive(Debug, Default)]
struct Sections {
    text: Option<(Range<u64>, Vec<u8>)>,
    eh_frame: Option<(Range<u64>, Vec<u8>)>,
    eh_frame_hdr: Option<(Range<u64>, Vec<u8>)>,
    debug_frame: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct Modules(Vec<Mapped>);

/// A line of `/proc/PID/maps` for an executable mapping of a file.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    range: Range<u64>,
    offset: u64,
    path: &'a str,
}

fn executable(line: &str) -> Option<Line<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    let is_executable = words.next()?.contains('x');
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2)?.trim_start();
    (is_executable && path.starts_with('/')).then_some(Line { range, offset, path })
}

impl Modules {
    pub(super) fn new(maps: &str) -> Self {
        let mut left = SECTIONS_LIMIT;
        let mapped = maps.lines().filter_map(executable).filter_map(|line| Mapped::new(&line, &mut left));
        Self(mapped.collect())
    }

    pub(super) fn add_to(&self, unwinder: &mut impl Unwinder<Module = Module<Vec<u8>>>) {
        for mapped in &self.0 {
            let sections = &mapped.sections;
            let range =
                |section: &Option<(Range<u64>, Vec<u8>)>| section.as_ref().map(|(range, _)| range.clone());
            let bytes =
                |section: &Option<(Range<u64>, Vec<u8>)>| section.as_ref().map(|(_, bytes)| bytes.clone());
            let info = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(&sections.text),
                text: bytes(&sections.text),
                eh_frame_svma: range(&sections.eh_frame),
                eh_frame: bytes(&sections.eh_frame),
                eh_frame_hdr_svma: range(&sections.eh_frame_hdr),
                eh_frame_hdr: bytes(&sections.eh_frame_hdr),
                debug_frame: sections.debug_frame.clone(),
                ..ExplicitModuleSectionInfo::default()
            };
            unwinder.add_module(Module::new(mapped.path.clone(), mapped.range.clone(), mapped.bias, info));
        }
    }

    fn at(&self, address: u64) -> Option<&Mapped> {
        self.0.iter().find(|mapped| mapped.range.contains(&address))
    }
}

impl Mapped {
    /// Returns `None` for a file that cannot be read or is not an ELF file. Sections longer than
    /// `left`, the rest of the limit, are omitted.
    fn new(line: &Line<'_>, left: &mut usize) -> Option<Self> {
        let data = punctual_files::read_regular(Path::new(line.path), FILE_LIMIT).ok()?;
        let file = object::File::parse(&*data).ok()?;
        // Mappings start at page boundaries, segments at any address.
        let is_here = |segment: &object::Segment<'_, '_>| {
            let flags =
                matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
            let (start, size) = segment.file_range();
            flags
                && start < line.offset.saturating_add(line.range.end - line.range.start)
                && start.saturating_add(size) > line.offset
        };
        let segment = file.segments().find(is_here)?;
        let first = segment.address().wrapping_sub(segment.file_range().0).wrapping_add(line.offset);
        let bias = line.range.start.wrapping_sub(first);
        let mut section = |name| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address().saturating_add(section.size());
            let data = section.data().ok()?;
            *left = left.checked_sub(data.len())?;
            Some((range, data.to_vec()))
        };
        let sections = Sections {
            text: section(".text"),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
        };
        Some(Self { path: line.path.to_owned(), range: line.range.clone(), bias, sections })
    }
}

/// Looks up names; reads each file once.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Option<Loader>>);

impl Names {
    /// Returns the file that contains an address, and the functions there.
    pub(super) fn resolve(&mut self, modules: &Modules, address: u64) -> (Option<String>, Vec<Function>) {
        let Some(mapped) = modules.at(address) else { return (None, Vec::new()) };
        let loader = self.0.entry(mapped.path.clone()).or_insert_with(|| load(&mapped.path));
        let functions = loader.as_ref().map(|loader| functions(loader, address.wrapping_sub(mapped.bias)));
        (Some(clean(&mapped.path)), functions.unwrap_or_default())
    }
}

/// Loads the names of functions from a copy of a file. The file itself would be mapped, and another
/// process that truncates it would end this one by SIGBUS.
fn load(path: &str) -> Option<Loader> {
    let content = punctual_files::read_regular(Path::new(path), FILE_LIMIT).ok()?;
    let mut copy = File::from(memfd_create(c"punctual-names", MemfdFlags::CLOEXEC).ok()?);
    copy.write_all(&content).ok()?;
    Loader::new(format!("/proc/self/fd/{}", copy.as_raw_fd())).ok()
}

fn functions(loader: &Loader, address: u64) -> Vec<Function> {
    let mut functions = Vec::new();
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            // Line tables name only inlined functions, not the function itself.
            let name = frame.function.and_then(|name| Some(clean(&name.demangle().ok()?)));
            let place = frame.location.and_then(|location| Some((location.file?, location.line)));
            let place = place.map(|(file, line)| match line {
                Some(line) => format!("{}:{line}", clean(file)),
                None => clean(file),
            });
            if name.is_some() || place.is_some() {
                functions.push(Function { name: name.unwrap_or_else(|| "?".into()), place });
            }
        }
    }
    // The name of the outermost function, whose path is only in the symbol.
    if let Some(name) = loader.find_symbol(address).map(|name| addr2line::demangle_auto(name.into(), None)) {
        match functions.last_mut() {
            Some(outermost) => outermost.name = clean(&name),
            None => functions.push(Function { name: clean(&name), place: None }),
        }
    }
    functions
}

/// Sanitizes a name, which comes from a file that any user may have written.
fn clean(name: &str) -> String {
    Printable(name).to_string()
}

#[cfg(test)]
mod tests {
    use object::ObjectSymbol;

    use super::*;

    #[test]
    fn reads_lines_about_executable_files() {
        let line = "7f00-8f00 r-xp 00001000 fe:00 123    /a dir/app";
        let expected = Line { range: 0x7f00..0x8f00, offset: 0x1000, path: "/a dir/app" };
        assert_eq!(executable(line), Some(expected));
        for line in
            ["7f00-8f00 rw-p 0 0:0 0 /lib", "7f00-8f00 r-xp 0 0:0 0 [vdso]", "x", "", "1-2 r-xp 0 0:0 0"]
        {
            assert_eq!(executable(line), None, "{line}");
        }
    }

    #[test]
    fn names_functions_of_file_truncated_meanwhile() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let place = place.path();
        std::fs::copy(std::env::current_exe().unwrap(), place).unwrap();
        let content = std::fs::read(place).unwrap();
        let file = object::File::parse(&*content).unwrap();
        let is_this = |name: &str| name.contains("names_functions_of_file_truncated_meanwhile");
        let symbol = file.symbols().find(|symbol| symbol.name().is_ok_and(is_this) && symbol.size() > 0);
        let loader = load(place.to_str().unwrap()).unwrap();
        // It truncates the file.
        File::create(place).unwrap();
        let found = functions(&loader, symbol.expect("the program has symbols").address());
        assert!(found.iter().any(|function| is_this(&function.name)), "{found:?}");
    }

    fn own_program(maps: &str) -> Line<'_> {
        let program = std::env::current_exe().unwrap();
        maps.lines().filter_map(executable).find(|line| Path::new(line.path) == program).unwrap()
    }

    #[test]
    fn limits_total_length_of_sections() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = own_program(&maps);
        let mut left = SECTIONS_LIMIT;
        assert!(Mapped::new(&line, &mut left).unwrap().sections.text.is_some());
        let mut left = SECTIONS_LIMIT - left - 1;
        Mapped::new(&line, &mut left).unwrap();
        assert!(Mapped::new(&line, &mut left).unwrap().sections.text.is_none());
    }

    /// A process can map any file as code.
    #[test]
    fn accepts_file_with_segment_of_any_length() {
        const PROGRAM_HEADERS: usize = 32;
        const COUNT: usize = 56;
        const HEADER_BYTES: usize = 56;
        const FILE_SIZE: usize = 32;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = own_program(&maps);
        let mut content = std::fs::read(line.path).unwrap();
        let word = |content: &[u8], at: usize| u64::from_ne_bytes(*content[at..].first_chunk().unwrap());
        let first = word(&content, PROGRAM_HEADERS) as usize;
        for header in 0..usize::from(content[COUNT]) {
            let at = first + header * HEADER_BYTES + FILE_SIZE;
            content[at..at + 8].fill(0xff);
        }
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&place, content).unwrap();
        let line = Line { path: place.path().to_str().unwrap(), ..line };
        assert!(Mapped::new(&line, &mut { SECTIONS_LIMIT }).is_some());
    }

    #[test]
    fn skips_file_that_is_not_a_program() {
        let maps =
            "1000-2000 r-xp 00000000 00:00 0 /etc/hostname\n1000-2000 r-xp 00000000 00:00 0 /no/such/file\n";
        assert!(Modules::new(maps).0.is_empty());
    }
}
