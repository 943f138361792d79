//! Many mutations in one build, one of which an environment variable switches on.
//!
//! Building takes longer than most tests, so `wake(a)` becomes
//! `(if is(17) { () } else { wake(a) })`. The same switch records which tests reach which
//! mutation: the other tests need not run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::mutation::{Form, Mutation};
use super::sources::Source;
use crate::Result;
use crate::working_copy::WorkingCopy;

/// Selects a mutation by its number.
pub(crate) const CHOSEN: &str = "PUNCTUAL_MUTANT";
/// Names a file in which a test sets one byte for every mutation that it reaches.
pub(super) const REACHED: &str = "PUNCTUAL_MUTANTS_REACHED";

/// A source that contains its mutations.
pub(crate) struct Switched {
    text: String,
    /// The range of each mutation in the text, with its number.
    positions: Vec<(Range<usize>, usize)>,
}

impl Switched {
    /// Writes the sources of a package with these of its `count` mutations, which must be sorted in
    /// the order in which they are found. Returns them by the paths that the compiler prints.
    pub(crate) fn write(
        copy: &WorkingCopy,
        package: &str,
        sources: &[Source],
        mutations: &[(usize, &Mutation)],
        count: usize,
    ) -> Result<BTreeMap<String, Self>> {
        let mut written = BTreeMap::new();
        for Source { file, module, text } in sources {
            let here: Vec<_> =
                mutations.iter().filter(|(_, mutation)| mutation.file == *file).copied().collect();
            let mut switched = Self::new(text, &here);
            if module.is_empty() {
                switched.text.push_str(&self::module(count));
            }
            copy.write(package, file, &switched.text)?;
            written.insert(format!("crates/{package}/{file}"), switched);
        }
        Ok(written)
    }

    fn new(source: &str, mutations: &[(usize, &Mutation)]) -> Self {
        let mut switched = Self { text: String::new(), positions: Vec::new() };
        switched.put(source, 0..source.len(), mutations);
        switched
    }

    fn put(&mut self, source: &str, range: Range<usize>, mut mutations: &[(usize, &Mutation)]) {
        let mut at = range.start;
        while let [(number, mutation), rest @ ..] = mutations {
            let Range { start, end } = mutation.range;
            let inside = rest.iter().take_while(|(_, other)| other.range.start < end).count();
            self.text.push_str(&source[at..start]);
            let begin = self.text.len();
            let (open, close) = if mutation.form == Form::Expression { ("(", ")") } else { ("", "") };
            // Writing to a String cannot fail.
            let _ = write!(
                self.text,
                "{open}if crate::{MODULE}::is({number}) {{ {} }} else {{ ",
                mutation.replacement
            );
            self.put(source, start..end, &rest[..inside]);
            let _ = write!(self.text, " }}{close}");
            self.positions.push((begin..self.text.len(), *number));
            at = end;
            mutations = &rest[inside..];
        }
        self.text.push_str(&source[at..range.end]);
    }

    /// Returns the mutations that can cause a compiler error at a place: the innermost one around
    /// it, or those within.
    pub(crate) fn to_blame(&self, place: &Range<usize>) -> Vec<usize> {
        let contains = |a: &Range<usize>, b: &Range<usize>| a.start <= b.start && b.end <= a.end;
        let around = self.positions.iter().filter(|(range, _)| contains(range, place));
        match around.min_by_key(|(range, _)| range.len()) {
            Some((_, number)) => vec![*number],
            None => {
                let within = self.positions.iter().filter(|(range, _)| contains(place, range));
                within.map(|(_, number)| *number).collect()
            }
        }
    }
}

const MODULE: &str = "punctual_mutants";

/// Returns the module that the switches call, to be appended after a crate's other modules.
fn module(count: usize) -> String {
    format!(
        r#"
/// Which mutation is on.
#[doc(hidden)]
pub mod {MODULE} {{
    extern crate std;
    use self::std::fs::File;
    use self::std::os::fd::AsRawFd;
    use self::std::prelude::v1::*;
    use self::std::sync::OnceLock;
    use self::std::sync::atomic::{{AtomicU8, Ordering}};

    const COUNT: usize = {count};

    struct State {{
        chosen: usize,
        reached: Option<&'static [AtomicU8; COUNT]>,
    }}

    static STATE: OnceLock<State> = OnceLock::new();

    /// Reads the environment before `main`: afterwards the switch may be asked where nothing may
    /// allocate.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static INIT: extern "C" fn() = {{
        extern "C" fn init() {{
            STATE.get_or_init(state);
        }}
        init
    }};

    unsafe extern "C" {{
        fn mmap(at: *mut u8, size: usize, rights: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    }}

    /// Maps the file, so that what a fork reaches is seen, and costs as little as what a thread
    /// does.
    fn map(path: self::std::ffi::OsString) -> &'static [AtomicU8; COUNT] {{
        let file = File::options().read(true).write(true).open(path).expect("the file for reached mutations is there");
        file.set_len(COUNT as u64).expect("it can be made so long");
        // SAFETY: a new shared mapping (1), to be read and written (3), which is never unmapped.
        let start = unsafe {{ mmap(self::std::ptr::null_mut(), COUNT, 3, 1, file.as_raw_fd(), 0) }};
        assert!(start as isize != -1, "the file for reached mutations can be mapped");
        // SAFETY: it is as long as that, and nobody accesses it but by atomics.
        unsafe {{ &*start.cast() }}
    }}

    #[cold]
    fn state() -> State {{
        let chosen = self::std::env::var("{CHOSEN}").ok().and_then(|number| number.parse().ok());
        State {{ chosen: chosen.unwrap_or(usize::MAX), reached: self::std::env::var_os("{REACHED}").map(map) }}
    }}

    #[inline(never)]
    pub fn is(number: usize) -> bool {{
        let state = STATE.get_or_init(state);
        if let Some(reached) = state.reached {{
            reached[number].store(1, Ordering::Relaxed);
        }}
        state.chosen == number
    }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find;

    const SOURCE: &str =
        "fn f(a: A) {\n    wake(a.load(Ordering::Acquire));\n    a.store(1, Ordering::Release)\n}\n";

    fn switched() -> (Vec<Mutation>, Switched) {
        let found = find::mutations("p", "src/x.rs", SOURCE).unwrap();
        let numbered: Vec<_> = found.iter().enumerate().collect();
        let switched = Switched::new(SOURCE, &numbered);
        (found, switched)
    }

    #[test]
    fn assigns_switch_to_every_mutation() {
        let (found, switched) = switched();
        assert!(syn::parse_file(&switched.text).is_ok(), "{}", switched.text);
        for number in 0..found.len() {
            assert_eq!(switched.text.matches(&format!("::is({number})")).count(), 1, "{}", switched.text);
        }
        assert!(syn::parse_file(&module(found.len())).is_ok());
    }

    #[test]
    fn blames_innermost_mutation() {
        let (_, switched) = switched();
        for (range, number) in &switched.positions {
            assert_eq!(switched.to_blame(range), [*number]);
        }
        let outer = 0..switched.text.len();
        assert_eq!(switched.to_blame(&outer).len(), switched.positions.len(), "one of them it must be");
    }
}
