//! The stack of a thread of another process.
//!
//! The thread is stopped while its registers and stack memory are copied, a fraction of a
//! millisecond. The copy is unwound afterwards.

mod modules;
mod thread;

use std::fmt::{self, Display, Formatter};

use framehop::{CacheNative, MayAllocateDuringUnwind, Unwinder, UnwinderNative};

use self::modules::Modules;
pub(crate) use self::thread::{Stopped, capture, release};

/// The maximum number of frames: an endless recursion has tens of thousands.
const FRAMES: usize = 128;

/// A frame on a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) address: u64,
    /// The functions at the address, innermost first: several with inlining, none if unknown.
    pub(crate) functions: Vec<Function>,
    /// The file that contains the code, if any.
    pub(crate) module: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// File and line.
    pub(crate) place: Option<String>,
}

/// The frames of a stack, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frames {
    pub(crate) frames: Vec<Frame>,
    /// The reason for a missing rest, if this is not the end of the stack.
    pub(crate) cut: Option<String>,
}

/// Unwinds a copied stack.
pub(crate) fn frames(stopped: &Stopped) -> Frames {
    let modules = Modules::new(&stopped.maps);
    let mut unwinder = UnwinderNative::<Vec<u8>, MayAllocateDuringUnwind>::new();
    modules.add_to(&mut unwinder);
    let mut cache = CacheNative::<_>::new();
    let mut read = |address| stopped.word(address).ok_or(());
    let mut iterator = unwinder.iter_frames(stopped.ip, stopped.registers, &mut cache, &mut read);
    let (mut addresses, mut cut) = (Vec::new(), None);
    while addresses.len() < FRAMES {
        match iterator.next() {
            // For a return address, the address of the call before it.
            Ok(Some(frame)) => addresses.push((frame.address(), frame.address_for_lookup())),
            Ok(None) => break,
            Err(error) => {
                cut = Some(format!("the rest cannot be unwound: {error}"));
                break;
            }
        }
    }
    if addresses.len() == FRAMES {
        cut = Some(format!("more than {FRAMES} frames"));
    }
    let mut names = modules::Names::default();
    let frame = |(address, lookup)| {
        let (module, functions) = names.resolve(&modules, lookup);
        Frame { address, functions, module }
    };
    Frames { frames: addresses.into_iter().map(frame).collect(), cut }
}

impl Display for Frames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, frame) in self.frames.iter().enumerate() {
            let module = frame.module.as_deref().unwrap_or("?");
            if frame.functions.is_empty() {
                writeln!(f, "{number:4}: {:#018x} in {module}", frame.address)?;
            }
            for (inlined, function) in frame.functions.iter().enumerate() {
                match inlined {
                    0 => write!(f, "{number:4}: {}", function.name)?,
                    _ => write!(f, "      {}", function.name)?,
                }
                match &function.place {
                    Some(place) => writeln!(f, "\n             at {place}")?,
                    None => writeln!(f, " in {module}")?,
                }
            }
        }
        match &self.cut {
            Some(why) => writeln!(f, "      … {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::mpsc::channel;

    use super::*;

    #[inline(never)]
    fn waits_below(depth: u32, when_deep: &mut dyn FnMut()) {
        match black_box(depth) {
            0 => when_deep(),
            _ => waits_below(depth - 1, when_deep),
        }
        black_box(depth);
    }

    /// Runs in a child process, since a thread cannot trace threads of its own process.
    #[test]
    #[ignore = "a program of another test"]
    fn program() {
        waits_below(20, &mut || {
            println!("READY");
            std::thread::sleep(std::time::Duration::from_secs(20));
        });
    }

    #[test]
    fn shows_backtrace_of_thread_in_other_process() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};

        use punctual_process::child::BoundedChild;

        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "stack::tests::program", "--test-threads", "1"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let ready = output.lines().map_while(Result::ok).any(|line| line.contains("READY"));
        let process = child.id();
        let (sender, receiver) = channel();
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        for thread in tasks.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
            let seen = capture(process as i32, thread.parse().unwrap(), None).map(|stopped| frames(&stopped));
            sender.send(seen).unwrap();
        }
        drop(sender);
        child.end_at_once().unwrap();
        assert!(ready);
        let all: Vec<_> = receiver.into_iter().collect();
        if all.iter().all(Result::is_err) {
            // In containers that forbid ptrace.
            return test_skip::skip(test_skip::Need::System("ptrace"), format_args!("{:?}", all[0]));
        }
        let calls = |frames: &Frames| {
            frames
                .frames
                .iter()
                .flat_map(|frame| &frame.functions)
                .filter(|f| f.name.contains("waits_below"))
                .count()
        };
        let deepest = all.iter().flatten().max_by_key(|frames| calls(frames)).unwrap();
        assert!(calls(deepest) >= 21, "{deepest}");
        assert!(deepest.to_string().contains("stack/mod.rs:"), "{deepest}");
        assert_eq!(deepest.cut, None, "{deepest}");
    }
}
