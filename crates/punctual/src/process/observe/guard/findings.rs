//! Findings about one task: stored in memory allocated before the first job, and symbolized after
//! the last.

use std::cell::UnsafeCell;

use crate::report::Finding;

/// Maximum number of distinct calls.
const KINDS: usize = 8;
/// Name of further calls.
const OTHERS: &str = "other calls";
/// Maximum recorded depth of a stack.
const DEPTH: usize = 48;

/// Findings about the jobs of a task.
pub(super) struct Findings {
    /// True if a finding stops the app.
    stops: bool,
    /// The last entry is for all calls without an entry.
    kinds: UnsafeCell<[Kind; KINDS + 1]>,
}

/// One call, and the location of its first occurrence.
#[derive(Clone, Copy)]
struct Kind {
    what: &'static str,
    /// 0 if the entry is free.
    count: u64,
    depth: usize,
    /// Return addresses, innermost first.
    stack: [usize; DEPTH],
}

// SAFETY: `add` is called by the thread that occupies the task's level, `explained` when no job of
// the task can run.
unsafe impl Sync for Findings {}

impl std::fmt::Debug for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Findings").field("stops", &self.stops).finish_non_exhaustive()
    }
}

impl Findings {
    pub(super) fn new(stops: bool) -> Self {
        const NONE: Kind = Kind { what: "", count: 0, depth: 0, stack: [0; DEPTH] };
        Self { stops, kinds: UnsafeCell::new([NONE; KINDS + 1]) }
    }

    pub(super) fn stops(&self) -> bool {
        self.stops
    }

    /// Records a call; the first time with the stack, starting at `place` if known. Neither
    /// allocates nor locks.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    pub(super) unsafe fn add(&self, what: &'static str, place: Option<usize>) {
        // SAFETY: by this function's contract no other thread is here, and no code in here calls it
        // again.
        let kinds = unsafe { &mut *self.kinds.get() };
        let (last, known) = kinds.split_last_mut().expect("there are some");
        let (kind, what) = match known.iter_mut().find(|kind| kind.count == 0 || kind.what == what) {
            Some(kind) => (kind, what),
            None => (last, OTHERS),
        };
        kind.count += 1;
        if kind.count == 1 {
            kind.what = what;
            kind.depth = capture(&mut kind.stack, place);
        }
    }

    /// Returns the findings, with the names of functions.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(super) unsafe fn explained(&self) -> Vec<Finding> {
        // SAFETY: no thread adds an entry, by this function's contract.
        let kinds = unsafe { &*self.kinds.get() };
        let found = kinds.iter().filter(|kind| kind.count > 0);
        found
            .map(|kind| Finding {
                call: kind.what.to_owned(),
                count: kind.count,
                stack: names(&kind.stack[..kind.depth]),
            })
            .collect()
    }
}

/// Makes the unwinder perform its one-time initialization.
pub(super) fn prepare() {
    capture(&mut [0; DEPTH], None);
}

/// Stores the return addresses of the calling thread from `place` on, and returns their number.
fn capture(stack: &mut [usize; DEPTH], place: Option<usize>) -> usize {
    let mut depth = 0;
    let mut begun = place.is_none();
    let mut note = |ip: usize| {
        begun |= place == Some(ip);
        if begun && depth < DEPTH {
            stack[depth] = ip;
            depth += 1;
        }
        depth < DEPTH
    };
    walk(&mut note);
    if let (0, Some(place)) = (depth, place) {
        // The unwinder does not get past the signal's frame.
        stack[0] = place;
        depth = 1;
    }
    depth
}

/// Names of our functions below a task's function.
const BELOW: [&str; 2] = ["punctual::observe::guard::job::users_code", "punctual::task::job::"];
/// File of our functions inlined there, and name of the generated code above them.
const DISPATCH: (&str, &str) = ("punctual/src/task/job.rs", "call");
/// Names of our functions and of the allocator's interface above the call.
const ABOVE: [&str; 4] =
    ["punctual::observe::guard::", "punctual_sync::futex::selector::", "__rust_", "__rustc"];

/// A function on a stack, perhaps inlined.
struct Frame {
    name: String,
    file: String,
    line: Option<u32>,
}

impl Frame {
    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.contains(name))
    }
}

/// Returns the functions of a stack, including inlined ones, from the call to the task's function.
fn names(stack: &[usize]) -> Vec<String> {
    let mut frames: Vec<Frame> = Vec::new();
    for &ip in stack {
        let mut here = frames_at(ip);
        if frames.is_empty() {
            let ours = here.iter().rposition(|frame| frame.is_one_of(&ABOVE) && !frame.is_one_of(&BELOW));
            here.drain(..ours.map_or(0, |last| last + 1));
        }
        let end = here.iter().position(|frame| frame.is_one_of(&BELOW));
        here.truncate(end.unwrap_or(here.len()));
        frames.append(&mut here);
        if end.is_some() {
            break;
        }
    }
    // Names of inlined functions lack their paths.
    while frames.pop_if(|last| last.file.ends_with(DISPATCH.0)).is_some() {}
    frames.pop_if(|last| last.name.rsplit("::").next() == Some(DISPATCH.1));
    let text = |frame: Frame| match frame.line {
        Some(line) => format!("{} at {}:{line}", frame.name, frame.file),
        None => frame.name,
    };
    frames.into_iter().map(text).collect()
}

/// Returns the function at an address, preceded by those that are inlined there.
fn frames_at(ip: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    resolve(ip, &mut |name, file, line| frames.push(Frame { name, file, line }));
    if frames.is_empty() {
        let name = format!("{ip:#x}, of which the program has no name");
        frames.push(Frame { name, file: String::new(), line: None });
    }
    frames
}

// Without the feature there are no stacks.

/// Passes the return addresses of the calling thread's stack to `note`, innermost first, while it
/// returns `true`. Neither allocates nor locks.
#[cfg_attr(not(feature = "guard"), allow(unused_variables, reason = "no stack can be walked"))]
fn walk(note: &mut dyn FnMut(usize) -> bool) {
    // SAFETY: only the resolution of names needs synchronization; walking the stack accesses only
    // this thread's.
    #[cfg(feature = "guard")]
    unsafe {
        backtrace::trace_unsynchronized(|frame| note(frame.ip().addr()));
    }
}

/// Passes the name, file and line of the function at an address to `found`, preceded by those that
/// are inlined there.
#[cfg_attr(not(feature = "guard"), allow(unused_variables, reason = "no name is known"))]
fn resolve(ip: usize, found: &mut dyn FnMut(String, String, Option<u32>)) {
    #[cfg(feature = "guard")]
    backtrace::resolve(ip as *mut std::ffi::c_void, |symbol| {
        if let Some(name) = symbol.name() {
            let file = symbol.filename().map_or_else(String::new, |file| file.display().to_string());
            // Without the hash.
            found(format!("{name:#}"), file, symbol.lineno());
        }
    });
}

#[cfg(all(test, feature = "guard"))]
mod tests {
    use super::*;

    #[test]
    fn counts_per_call_and_keeps_first_stack() {
        let findings = Findings::new(false);
        let calls = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        // SAFETY: a single thread.
        let found = unsafe {
            findings.add("a", None);
            calls.iter().for_each(|call| findings.add(call, None));
            findings.explained()
        };
        let counts: Vec<_> = found.iter().map(|finding| (finding.call.as_str(), finding.count)).collect();
        let expected =
            [("a", 2), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 1), ("h", 1), (OTHERS, 2)];
        assert_eq!(counts, expected);
        // The caller of this test, without our own functions.
        let stack = &found[0].stack;
        assert!(!stack.is_empty() && !stack[0].contains("findings"), "{found:?}");
    }

    #[test]
    fn address_off_stack_belongs_to_other_stack() {
        let mut stack = [0; DEPTH];
        assert_eq!((capture(&mut stack, Some(5)), stack[0]), (1, 5));
        assert!(capture(&mut stack, None) > 1);
    }
}
