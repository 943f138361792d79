//! The memory shared by Linux and the image, as defined in `module/punctual_cpu.h`.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// The version of this layout. Module, image and this crate must agree.
pub const VERSION: u32 = 2;

/// The first word of an image.
pub(super) const MAGIC: u64 = 0x3155_5043_5443_4e50;
/// The size of the memory block.
pub(super) const BLOCK: usize = 0x20_0000;
/// The part of it that is mapped here; the image is behind it.
pub(super) const SHARED: usize = 0x8_0000;
/// The offset of the text ring.
pub(super) const TEXT: usize = 0x1000;
pub(super) const TEXT_SIZE: usize = 0xF000;
/// The offset of the figures of an app.
pub(super) const FIGURES: usize = 0x1_0000;
/// The offset of the memory that programs share.
pub(super) const USER: usize = 0x5_0000;

const _: () = assert!(USER - FIGURES == punctual_core::remote::SIZE);

/// The header at the beginning of the block.
#[repr(C)]
pub(super) struct Shared {
    base: u64,
    distributor: u64,
    interface: u64,
    version: u32,
    cpu: u32,
    gic: u32,
    smc: u32,
    doorbell: u32,
    bell: u32,
    patience_ms: u32,
    grace_ms: u32,
    reserved0: u64,
    stop: AtomicU32,
    ringing: AtomicU32,
    linux_beat: AtomicU64,
    reserved1: [u64; 6],
    pub(super) state: AtomicU32,
    pub(super) code: AtomicI32,
    pub(super) beat: AtomicU64,
    pub(super) written: AtomicU64,
    rings: AtomicU64,
    reserved2: [u64; 4],
}

const _: () = assert!(size_of::<Shared>() == 192);

/// The offset of [`Shared::state`].
pub(super) const STATE: usize = std::mem::offset_of!(Shared, state);

/// The module's description of itself.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About {
    pub(super) version: u32,
    pub(super) gic: u32,
    pub(super) base: u64,
    pub(super) distributor: u64,
}

/// The parameters of a start.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    pub(super) cpu: u32,
    pub(super) patience_ms: u32,
    pub(super) grace_ms: u32,
    pub(super) eventfd: i32,
    pub(super) interface: u64,
}

pub(super) const ABOUT: u64 = request(2, 0xA0, size_of::<About>());
pub(super) const PLACE: u64 = request(3, 0xA1, size_of::<Start>());
pub(super) const START: u64 = request(3, 0xA2, size_of::<Start>());
pub(super) const STOP: u64 = request(1, 0xA3, size_of::<u32>());
pub(super) const RING: u64 = request(0, 0xA4, 0);
pub(super) const IS_ON: u64 = request(0, 0xA5, 0);

/// Returns the number of an ioctl, as `_IOC` computes it on all supported processors.
const fn request(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | (b'p' as u64) << 8 | number
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const HEADER: &str = include_str!("../../module/punctual_cpu.h");
    const MODULE: &str = include_str!("../../module/punctual_cpu.c");

    /// Returns the fields of a structure with their sizes; reserved ones fill cache lines.
    fn fields(text: &str, name: &str) -> Vec<(String, usize)> {
        let begin = text.find(&format!("struct {name} {{")).unwrap_or_else(|| panic!("no struct {name}"));
        let body = &text[begin..begin + text[begin..].find("\n}").unwrap()];
        let mut fields = Vec::new();
        for line in body.lines().skip(1).map(str::trim) {
            let line = line.split("/*").next().unwrap().split("//").next().unwrap().trim();
            let Some(line) = line.strip_suffix([';', ',']) else { continue };
            let line = line.trim_start_matches("pub(super) ");
            let (kind, name) = match line.split_once(": ") {
                Some((name, kind)) => (kind, name.to_owned()),
                None => line.split_once(' ').map(|(kind, name)| (kind, name.to_owned())).unwrap(),
            };
            let one = if kind.contains("64") { 8 } else { 4 };
            let count = |text: &str, open, close| {
                let inner = text.split_once(open)?.1.split_once(close)?.0;
                inner.rsplit("; ").next()?.parse::<usize>().ok()
            };
            let times = count(&name, '[', ']').or(count(kind, '[', ']')).unwrap_or(1);
            fields.push((name.split('[').next().unwrap().to_owned(), one * times));
        }
        fields
    }

    #[test]
    fn equals_layout_of_module_and_image() {
        let own = fields(include_str!("layout.rs"), "Shared");
        assert_eq!(own.iter().map(|(_, size)| size).sum::<usize>(), size_of::<Shared>());
        assert_eq!(fields(HEADER, "punctual_cpu_shared"), own);
        assert_eq!(fields(HEADER, "punctual_cpu_start"), fields(include_str!("layout.rs"), "Start"));
        assert_eq!(fields(HEADER, "punctual_cpu_about"), fields(include_str!("layout.rs"), "About"));
        let bare = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bare/punctual-bare");
        // Not in a published package.
        if bare.exists() {
            let image = fs::read_to_string(bare.join("src/amp/shared.rs")).unwrap();
            assert_eq!(fields(&image, "Shared"), own);
            let script = fs::read_to_string(bare.join("amp.ld")).unwrap();
            let head = format!("QUAD({MAGIC:#x})\n        LONG({VERSION})\n");
            assert!(script.contains(&head) && script.contains(&format!(". = {SHARED:#x};")), "{script}");
        }
    }

    #[test]
    fn equals_ioctl_numbers_of_module() {
        let defined = |name: &str| {
            let line =
                HEADER.lines().find_map(|line| line.strip_prefix(&format!("#define PUNCTUAL_CPU_{name} ")));
            let text = line.unwrap_or_else(|| panic!("{name}")).trim_end_matches("ULL");
            match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                None => text.parse().unwrap(),
            }
        };
        assert_eq!(defined("VERSION"), u64::from(VERSION));
        assert_eq!(defined("MAGIC"), MAGIC);
        assert_eq!(defined("BLOCK"), BLOCK as u64);
        assert_eq!(defined("SHARED"), SHARED as u64);
        assert_eq!(defined("TEXT"), TEXT as u64);
        assert_eq!(defined("TEXT_SIZE"), TEXT_SIZE as u64);
        assert_eq!(defined("FIGURES"), FIGURES as u64);
        assert_eq!(defined("USER"), USER as u64);
        assert!(MODULE.contains(&format!("MODULE_VERSION(\"{VERSION}\")")));
        assert_eq!([ABOUT, PLACE, START], [0x8018_70A0, 0xC018_70A1, 0xC018_70A2]);
        assert_eq!([STOP, RING, IS_ON], [0x4004_70A3, 0x70A4, 0x70A5]);
    }

    /// Returns every occurrence of `name` as a whole word, with the text before and after it on its
    /// line.
    fn occurrences<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.lines().flat_map(move |line| {
            line.match_indices(name)
                .map(move |(at, _)| (&line[..at], &line[at + name.len()..]))
                .filter(move |(before, after)| !before.ends_with(is_word) && !after.starts_with(is_word))
        })
    }

    #[test]
    fn module_reads_user_words_once() {
        let mut words = 0;
        for (before, after) in occurrences(MODULE, "head").filter(|(_, after)| after.starts_with("->")) {
            let is_once = before.ends_with("READ_ONCE(") || before.ends_with("WRITE_ONCE(");
            let is_release = before.ends_with("smp_store_release(&");
            let is_plain_store = before.trim().is_empty() && after.contains(" = ");
            assert!(is_once || is_release || is_plain_store, "{before}head{after}");
            words += 1;
        }
        assert!(words > 15, "only {words} accesses found");
    }

    #[test]
    fn module_reads_eventfd_once_per_interrupt() {
        let code = |(before, _): &(&str, &str)| !before.contains("/*") && !before.ends_with("head->");
        let occurrences: Vec<_> = occurrences(MODULE, "doorbell").filter(code).collect();
        for (before, after) in &occurrences {
            let is_exchange = before.ends_with("xchg(&") && after.starts_with(", ");
            let is_declaration = *before == "static struct eventfd_ctx *";
            assert!(
                is_exchange || is_declaration || before.ends_with("READ_ONCE("),
                "{before}doorbell{after}"
            );
        }
        assert_eq!(occurrences.iter().filter(|(before, _)| before.ends_with("READ_ONCE(")).count(), 1);
    }

    #[test]
    fn module_bounds_every_wait_for_image() {
        let calls: Vec<_> = occurrences(MODULE, "stop").filter(|(_, after)| after.starts_with('(')).collect();
        let (definitions, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(before, _)| before.ends_with("static int "));
        assert_eq!((definitions.len(), calls.len()), (1, 2));
        for (_, after) in calls {
            assert!(after.contains("min") && after.contains("MAX_STOP_MS"), "stop{after}");
            assert!(!after.contains("2 * "), "the product has 32 bits: stop{after}");
        }
    }
}
