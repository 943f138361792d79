//! Access to the program on a CPU that Linux gave up, for a program on Linux.
//!
//! `punctual isolate run --offline --cpus N -- BARE LINUX` starts both. They share memory, in which
//! the bare program places structures of [`shared`](punctual_sync::shared) and this one attaches to
//! them in the same order, and a doorbell in each direction. Both are ordinary programs: neither
//! knows more of the other one than these types.
//!
//! ```no_run
//! use punctual::remote::Remote;
//! use punctual::sync::shared::{Latest, Ring};
//!
//! let (remote, mut memory) = Remote::connect()?;
//! let wanted = memory.attach::<Latest<f32>>()?;
//! let levels = memory.attach::<Ring<[f32; 2], 64>>()?;
//!
//! wanted.writer().expect("this is the one writer").write(0.5);
//! remote.ring();
//! # let _ = levels;
//! # Ok::<(), punctual::remote::RemoteError>(())
//! ```
//!
//! In an app, a task is released by the bell of a [`Remote`] as by any other source, `#[task(binds
//! = remote, local = [remote])]`, and calls [`Remote::acknowledge`] first.

use std::env;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_sync::shared::{Arena, LayoutError, LayoutField, Shareable};

use crate::port::linux::mapping::Mapping;

/// Environment variable by which `punctual isolate` describes the device, for example
/// `device=3,bell=4,mapped=524288,memory=327680,state=128,ring=28836`.
const VARIABLE: &str = "PUNCTUAL_REMOTE";

/// Time that the bare program has to place a structure.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of looks for a structure.
const ATTACH_INTERVAL: Duration = Duration::from_millis(1);

/// First state of the CPU in which the program has ended.
const ENDED: u32 = 2;

/// Why the program on the other CPU cannot be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteError {
    /// This program was started without the other one.
    NotStarted,
    /// The environment variable is not as `punctual isolate` writes it.
    Variable(String),
    /// The memory cannot be mapped.
    Map(io::Error),
    /// The bare program has placed something else, or nothing within 10 s.
    Layout(LayoutError),
    /// The bare program has ended.
    Ended,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => write!(
                f,
                "cannot reach the program on the other CPU: {VARIABLE} is not set; start both by `punctual isolate run --offline \
                 --cpus N -- BARE THIS`"
            ),
            Self::Variable(value) => write!(
                f,
                "cannot reach the program on the other CPU: {VARIABLE} is `{value}`; use the `punctual` of this release to start both"
            ),
            Self::Map(error) => write!(f, "cannot map the memory of both programs: {error}"),
            Self::Layout(error) => write!(
                f,
                "cannot attach to what the program on the other CPU shares: {error}; build both programs with the same types in the \
                 same order"
            ),
            Self::Ended => f.write_str(
                "cannot attach to what the program on the other CPU shares: it has ended; see its output",
            ),
        }
    }
}

impl std::error::Error for RemoteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map(error) => Some(error),
            Self::Layout(error) => Some(error),
            _ => None,
        }
    }
}

/// The parts of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Descriptor of the memory, of which `mapped` bytes can be mapped.
    device: RawFd,
    mapped: usize,
    /// Descriptor that becomes readable when the other CPU rings.
    bell: RawFd,
    /// Request number of the ioctl that rings there.
    ring: u32,
    /// Offsets of the memory of both programs and of the state of the CPU.
    memory: usize,
    state: usize,
}

impl Layout {
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut entries = text.split(',').filter_map(|entry| entry.split_once('='));
            entries.find(|(key, _)| *key == name)?.1.parse::<u32>().ok()
        };
        let descriptor = |name| RawFd::try_from(value(name)?).ok();
        let layout = Self {
            device: descriptor("device")?,
            mapped: value("mapped")? as usize,
            bell: descriptor("bell")?,
            ring: value("ring")?,
            memory: value("memory")? as usize,
            state: value("state")? as usize,
        };
        let fits = layout.memory < layout.mapped && layout.state + size_of::<u32>() <= layout.memory;
        (fits && layout.memory.is_multiple_of(4096) && layout.state.is_multiple_of(4)).then_some(layout)
    }
}

/// The doorbells of both programs, and the state of the other CPU.
#[derive(Debug, Clone, Copy)]
pub struct Remote {
    layout: Layout,
    state: &'static AtomicU32,
}

impl Remote {
    /// Connects to the program with which this one was started. The memory stays mapped for the
    /// rest of the process.
    ///
    /// # Errors
    /// There is no such program, or the memory cannot be mapped.
    pub fn connect() -> Result<(Self, RemoteMemory), RemoteError> {
        let value = env::var_os(VARIABLE).ok_or(RemoteError::NotStarted)?;
        let value = value.to_string_lossy();
        let layout = Layout::parse(&value).ok_or_else(|| RemoteError::Variable(value.into_owned()))?;
        // SAFETY: the loader has made the descriptor inheritable, and nothing in this process
        // closes it.
        let device = unsafe { BorrowedFd::borrow_raw(layout.device) };
        let mapping = Mapping::new(layout.mapped, Some(device)).map_err(RemoteError::Map)?;
        let start = mapping.start();
        std::mem::forget(mapping);
        // SAFETY: both places are within the mapping, which lasts. The state is an atomic on both
        // sides. The memory of both programs was zero when the loader opened the device, and the
        // bare program makes structures there by one arena.
        let (state, arena) = unsafe {
            let state = &*start.add(layout.state).cast::<AtomicU32>();
            (state, Arena::new(start.add(layout.memory), layout.mapped - layout.memory))
        };
        let remote = Self { layout, state };
        Ok((remote, RemoteMemory { arena, remote }))
    }

    /// Interrupts the other CPU: its interrupt `BELL`. Without effect once the program there is
    /// about to end.
    ///
    /// Real-time safety: one system call, which does not block.
    pub fn ring(self) {
        // SAFETY: this ioctl takes no argument, and its failure has no consequence.
        unsafe { libc::ioctl(self.layout.device, self.layout.ring as _) };
    }

    /// Resets the bell, so that it is readable again at the next ring; returns how often the other
    /// CPU rang. A task that the bell releases calls it before it looks into the memory.
    ///
    /// Real-time safety: one system call, which does not block.
    pub fn acknowledge(self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(self.as_fd(), &mut count) {
            Ok(8) => u64::from_ne_bytes(count),
            _ => 0,
        }
    }

    /// Returns whether the program on the other CPU has ended or failed. The bell rings at its end.
    ///
    /// Real-time safety: one load.
    pub fn has_ended(self) -> bool {
        self.state.load(Ordering::Acquire) >= ENDED
    }
}

impl AsFd for Remote {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the loader has made the descriptor inheritable, and nothing in this process
        // closes it.
        unsafe { BorrowedFd::borrow_raw(self.layout.bell) }
    }
}

/// The memory of both programs.
#[derive(Debug)]
pub struct RemoteMemory {
    arena: Arena,
    remote: Remote,
}

impl RemoteMemory {
    /// Attaches to the next structure. Waits up to 10 s for the bare program to place it; for
    /// `init` and ordinary threads.
    ///
    /// # Errors
    /// The bare program places something else or nothing, or has ended.
    pub fn attach<T: Shareable>(&mut self) -> Result<&'static T, RemoteError> {
        let begin = Instant::now();
        loop {
            let has_ended = self.remote.has_ended();
            match self.arena.attach() {
                Err(error) if error.field == LayoutField::Magic => {
                    if has_ended {
                        return Err(RemoteError::Ended);
                    }
                    if begin.elapsed() > ATTACH_TIMEOUT {
                        return Err(RemoteError::Layout(error));
                    }
                }
                other => return other.map_err(RemoteError::Layout),
            }
            thread::sleep(ATTACH_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_sync::shared::Latest;

    use super::*;

    #[test]
    fn parses_layouts_and_rejects_mismatch() {
        let good = "device=3,bell=4,mapped=524288,memory=65536,state=128,ring=28836";
        let layout = Layout::parse(good).unwrap();
        assert_eq!((layout.device, layout.bell, layout.ring), (3, 4, 28836));
        assert_eq!((layout.mapped, layout.memory, layout.state), (524_288, 65_536, 128));
        for (part, other) in [
            ("device=3,", ""),
            ("bell=4", "bell=-4"),
            ("mapped=524288", "mapped=65536"),
            ("memory=65536", "memory=65537"),
            ("state=128", "state=65536"),
            ("state=128", "state=130"),
            ("ring=28836", "ring=x"),
        ] {
            assert_eq!(Layout::parse(&good.replace(part, other)), None, "{other}");
        }
    }

    /// A device of zeros, with the state of the CPU at byte 128 and the memory from 4096 on.
    fn device() -> (Remote, RemoteMemory, Arena) {
        #[repr(C, align(4096))]
        struct Memory([u8; 16_384]);
        let start = Box::leak(Box::new(Memory([0; 16_384]))).0.as_mut_ptr();
        let layout = Layout { device: -1, mapped: 16_384, bell: -1, ring: 0, memory: 4096, state: 128 };
        // SAFETY: the memory is never freed; the state is an atomic, and only arenas use the rest.
        let (state, ours, theirs) = unsafe {
            let memory = || Arena::new(start.add(4096), 12_288);
            (&*start.add(128).cast::<AtomicU32>(), memory(), memory())
        };
        let remote = Remote { layout, state };
        (remote, RemoteMemory { arena: ours, remote }, theirs)
    }

    #[test]
    fn attaches_to_structures_of_other_program() {
        let (_, mut memory, mut theirs) = device();
        theirs.init::<Latest<f32>>(0.5).unwrap();
        let wanted = memory.attach::<Latest<f32>>().unwrap();
        assert_eq!(wanted.reader().unwrap().read().value, 0.5);
        theirs.init::<Latest<u64>>(0).unwrap();
        let error = memory.attach::<Latest<f32>>().unwrap_err().to_string();
        assert!(error.contains("same types"), "{error}");
    }

    #[test]
    fn stops_waiting_for_ended_program() {
        let (remote, mut memory, mut theirs) = device();
        theirs.init::<Latest<f32>>(0.5).unwrap();
        assert!(!remote.has_ended());
        remote.state.store(ENDED, Ordering::Relaxed);
        assert!(remote.has_ended());
        assert!(memory.attach::<Latest<f32>>().is_ok(), "it was placed before");
        assert!(matches!(memory.attach::<Latest<f32>>(), Err(RemoteError::Ended)));
    }
}
