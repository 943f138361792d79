//! Sections of a trace.dat of version 7 before the pages, and the options that locate everything.
//!
//! The options precede the pages they point to, so that a truncated file can be read as far as it
//! goes.

use crate::format::Order;
use crate::format::dat::{Buffer, Content, WRITER, id};

/// Alignment of each CPU's data, unless the page size of the ring buffer is larger.
const ALIGNMENT: u64 = 4096;

/// Size of the flags, the ID and the length at the start of a section.
const SECTION_HEAD: u64 = 16;

/// Layout of the file.
pub(super) struct Plan {
    /// The file up to the first buffer.
    pub(super) head: Vec<u8>,
    pub(super) buffers: Vec<BufferPlan>,
}

/// Layout of a buffer.
pub(super) struct BufferPlan {
    /// Offset of its section.
    pub(super) at: u64,
    pub(super) head: [u8; SECTION_HEAD as usize],
    /// Offset and size in bytes of each CPU's pages.
    pub(super) cpus: Vec<(u64, u64)>,
}

impl Plan {
    pub(super) fn new(content: &Content) -> Self {
        // The length of the head does not depend on the offsets in it.
        let length = head(content, &buffers(content, 0)).len() as u64;
        let buffers = buffers(content, length);
        Self { head: head(content, &buffers), buffers }
    }
}

/// Lays out the buffers one after the other.
fn buffers(content: &Content, mut at: u64) -> Vec<BufferPlan> {
    let page = content.page as u64;
    let plan = |buffer: &Buffer| {
        let section = at;
        at += SECTION_HEAD;
        let place = |length: u64| {
            let start = at.next_multiple_of(ALIGNMENT.max(page));
            // A page truncated at the end of recording is dropped: readers expect whole ones.
            let length = length - length % page;
            if length > 0 {
                at = start + length;
            }
            (start, length)
        };
        let cpus = buffer.cpus.iter().map(|(_, pages)| pages.length()).map(place).collect();
        // All sections share the first string as their description.
        BufferPlan { at: section, head: section_head(id::BUFFER, 0, at - section - SECTION_HEAD), cpus }
    };
    content.buffers.iter().map(plan).collect()
}

fn head(content: &Content, buffers: &[BufferPlan]) -> Vec<u8> {
    let mut head = Head::new(content.long, content.page);
    head.describe("buffer flyrecord");
    let mut headers = sized_with_name("header_page", &content.header_page);
    headers.extend(sized_with_name("header_event", &content.header_event));
    head.section(id::HEADER_INFO, "headers", &headers);
    let of_ftrace = |name: &String| name == "ftrace";
    let ftrace = content.groups.iter().filter(|(name, _)| of_ftrace(name)).flat_map(|(_, texts)| texts);
    head.section(id::FTRACE_EVENTS, "ftrace events", &formats(&ftrace.collect::<Vec<_>>()));
    let others: Vec<_> = content.groups.iter().filter(|(name, _)| !of_ftrace(name)).collect();
    let mut events = (others.len() as u32).to_ne_bytes().to_vec();
    for (name, texts) in others {
        events.extend(name.as_bytes());
        events.push(0);
        events.extend(formats(&texts.iter().collect::<Vec<_>>()));
    }
    head.section(id::EVENT_FORMATS, "events format", &events);
    head.section(id::KALLSYMS, "kallsyms", &sized32(&content.symbols));
    head.section(id::PRINTK, "printk", &sized32(&content.printk));
    let mut names = (content.names.len() as u64 + 1).to_ne_bytes().to_vec();
    names.extend(&content.names);
    names.push(0);
    head.section(id::CMDLINES, "command lines", &names);

    let cpus = content.buffers.iter().flat_map(|buffer| buffer.cpus.iter().map(|(cpu, _)| cpu + 1)).max();
    head.option(id::CPUCOUNT, &cpus.unwrap_or(0).to_ne_bytes());
    for (option, text) in [(id::TRACECLOCK, &content.clocks), (id::UNAME, &content.system)] {
        if !text.is_empty() {
            head.option(option, &[text, &b"\0"[..]].concat());
        }
    }
    if let Some(scale) = content.scale {
        head.option(id::TSC2NSEC, &scale);
    }
    if let Some(declared) = &content.declared {
        head.option(id::VERSION, &[WRITER, declared, "\0"].concat().into_bytes());
    }
    for text in &content.statistics {
        head.option(id::CPUSTAT, &[text.as_bytes(), b"\0"].concat());
    }
    for (buffer, plan) in content.buffers.iter().zip(buffers) {
        let mut option = plan.at.to_ne_bytes().to_vec();
        for text in [&buffer.name, &buffer.clock] {
            option.extend(text.as_bytes());
            option.push(0);
        }
        option.extend((content.page as u32).to_ne_bytes());
        option.extend((buffer.cpus.len() as u32).to_ne_bytes());
        for ((cpu, _), (start, length)) in buffer.cpus.iter().zip(&plan.cpus) {
            option.extend(cpu.to_ne_bytes());
            option.extend(start.to_ne_bytes());
            option.extend(length.to_ne_bytes());
        }
        head.option(id::BUFFER, &option);
    }
    head.end()
}

/// The head of a file under construction.
struct Head {
    bytes: Vec<u8>,
    /// Location of the options' offset.
    options_at: usize,
    options: Vec<u8>,
    /// Descriptions of sections, concatenated.
    strings: Vec<u8>,
}

impl Head {
    fn new(long: u8, page: usize) -> Self {
        let mut bytes = b"\x17\x08\x44tracing7\0".to_vec();
        bytes.push(u8::from(Order::NATIVE == Order::Big));
        bytes.push(long);
        bytes.extend((page as u32).to_ne_bytes());
        bytes.extend(b"none\0\0");
        let options_at = bytes.len();
        bytes.extend([0; 8]);
        Self { bytes, options_at, options: Vec::new(), strings: Vec::new() }
    }

    fn describe(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        at
    }

    fn option(&mut self, option: u16, data: &[u8]) {
        self.options.extend(option.to_ne_bytes());
        self.options.extend((data.len() as u32).to_ne_bytes());
        self.options.extend(data);
    }

    fn section(&mut self, section: u16, name: &str, content: &[u8]) {
        let offset = (self.bytes.len() as u64).to_ne_bytes();
        self.option(section, &offset);
        self.append(section, name, content);
    }

    fn append(&mut self, section: u16, name: &str, content: &[u8]) {
        let description = self.describe(name);
        self.bytes.extend(section_head(section, description, content.len() as u64));
        self.bytes.extend(content);
    }

    /// Appends the options and the descriptions of sections, and sets the options' offset.
    fn end(mut self) -> Vec<u8> {
        let options = (self.bytes.len() as u64).to_ne_bytes();
        self.bytes[self.options_at..self.options_at + 8].copy_from_slice(&options);
        self.option(id::DONE, &0u64.to_ne_bytes());
        let content = std::mem::take(&mut self.options);
        self.append(id::DONE, "options", &content);
        let description = self.describe("strings");
        let content = std::mem::take(&mut self.strings);
        self.bytes.extend(section_head(id::STRINGS, description, content.len() as u64));
        self.bytes.extend(content);
        self.bytes
    }
}

fn sized_with_name(name: &str, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_ne_bytes();
    [name.as_bytes(), b"\0", &length, content].concat()
}

fn sized32(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_ne_bytes(), content].concat()
}

fn formats(texts: &[&Vec<u8>]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_ne_bytes().to_vec();
    for text in texts {
        bytes.extend((text.len() as u64).to_ne_bytes());
        bytes.extend(*text);
    }
    bytes
}

fn section_head(section: u16, description: u32, length: u64) -> [u8; SECTION_HEAD as usize] {
    let mut head = [0; SECTION_HEAD as usize];
    head[..2].copy_from_slice(&section.to_ne_bytes());
    head[4..8].copy_from_slice(&description.to_ne_bytes());
    head[8..].copy_from_slice(&length.to_ne_bytes());
    head
}
