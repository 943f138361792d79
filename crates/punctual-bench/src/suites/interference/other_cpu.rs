//! A thread on another CPU that repeatedly sweeps a buffer or writes to a disk.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::rt;

/// The parameters of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sweep {
    pub(super) bytes: usize,
    pub(super) stride: usize,
    pub(super) access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Reads,
    Writes,
}

impl Access {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }
}

/// Runs `measure` while an ordinary thread on `cpu` repeats the pass that `prepare` returns there:
/// from the end of its first pass.
///
/// # Errors
/// The thread cannot be started or pinned, or its preparation or a pass fails.
fn beside<R, P: FnMut() -> Result<(), String>>(
    cpu: usize,
    prepare: impl FnOnce() -> Result<P, String> + Send,
    measure: impl FnOnce() -> R,
) -> Result<R, String> {
    let (passes, over) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let repeat = || {
            rt::pin(cpu).map_err(|error| format!("not pinned to CPU {cpu}: {error}"))?;
            let mut pass = prepare()?;
            while !over.load(Ordering::Relaxed) {
                pass()?;
                passes.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let started = std::thread::Builder::new().spawn_scoped(scope, repeat);
        let thread = started.map_err(|error| format!("no thread can be started: {error}"))?;
        while passes.load(Ordering::Relaxed) == 0 && !thread.is_finished() {
            std::thread::yield_now();
        }
        let measured = measure();
        over.store(true, Ordering::Relaxed);
        rt::join(thread).map(|()| measured)
    })
}

/// Runs `measure` while another CPU sweeps a buffer, which is in the memory of its NUMA node.
///
/// # Errors
/// The thread cannot be started or pinned, or there is too little memory.
pub(super) fn sweeping<R>(sweep: Sweep, cpu: usize, measure: impl FnOnce() -> R) -> Result<R, String> {
    let prepare = move || {
        let mut buffer: Vec<u64> = Vec::new();
        let words = sweep.bytes / size_of::<u64>();
        let no_room = |error| format!("no buffer of {} bytes: {error}", sweep.bytes);
        buffer.try_reserve_exact(words).map_err(no_room)?;
        // Pages that were never written all map to one zero page.
        buffer.resize(words, 1);
        Ok(move || {
            pass(&mut buffer, sweep);
            Ok(())
        })
    };
    beside(cpu, prepare, measure)
}

fn pass(buffer: &mut [u64], sweep: Sweep) {
    let words = buffer.iter_mut().step_by(sweep.stride / size_of::<u64>());
    match sweep.access {
        Access::Reads => drop(black_box(words.fold(0_u64, |sum, word| sum.wrapping_add(*word)))),
        Access::Writes => words.for_each(|word| *word = black_box(word.wrapping_add(1))),
    }
}

/// Directories for a file, the first one on a disk is used.
const DIRECTORIES: [&str; 3] = ["/var/tmp", "/tmp", "."];
/// Size of the file, and of one write to it.
const FILE_BYTES: usize = 16 << 20;
const WRITE_BYTES: usize = 1 << 20;
/// Types of file systems in memory (`statfs(2)`).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Runs `measure` while another CPU writes to a file without a name, and waits after each write
/// until the data is on the disk.
///
/// # Errors
/// The thread cannot be started or pinned, or no file on a disk can be written.
pub(super) fn writing<R>(cpu: usize, measure: impl FnOnce() -> R) -> Result<R, String> {
    let prepare = || {
        let file = DIRECTORIES.into_iter().find_map(file_on_disk);
        let file = file.ok_or_else(|| format!("no file on a disk in {}", DIRECTORIES.join(", ")))?;
        let (data, mut at) = (vec![1_u8; WRITE_BYTES], 0);
        Ok(move || {
            let written = rustix::io::pwrite(&file, &data, at as u64);
            written.and_then(|_| rustix::fs::fdatasync(&file)).map_err(|error| format!("disk: {error}"))?;
            at = (at + WRITE_BYTES) % FILE_BYTES;
            Ok(())
        })
    };
    beside(cpu, prepare, measure)
}

/// Creates a file without a name, which ends with its descriptor; `None` if the directory is in
/// memory, or refuses.
fn file_on_disk(directory: &str) -> Option<File> {
    let file = punctual_files::unnamed(Path::new(directory)).ok()?;
    let kind = rustix::fs::fstatfs(&file).ok()?.f_type as u64 & 0xffff_ffff;
    (![TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_exactly_every_stride() {
        let mut buffer = vec![0_u64; 4096];
        pass(&mut buffer, Sweep { bytes: 32768, stride: 4096, access: Access::Writes });
        assert_eq!(buffer.iter().sum::<u64>(), 8);
        assert_eq!((buffer[0], buffer[512], buffer[1]), (1, 1, 0));
        pass(&mut buffer, Sweep { bytes: 32768, stride: 64, access: Access::Reads });
        assert_eq!(buffer.iter().sum::<u64>(), 8);
    }

    #[test]
    fn sweeps_while_it_is_measured() {
        let cpu = rt::allowed_cpus()[0];
        let sweep = Sweep { bytes: 4096, stride: 64, access: Access::Reads };
        assert_eq!(sweeping(sweep, cpu, || 7), Ok(7));
        assert!(sweeping(sweep, 100_000, || 7).unwrap_err().contains("CPU 100000"));
        let too_large = Sweep { bytes: isize::MAX as usize, ..sweep };
        assert!(sweeping(too_large, cpu, || 7).unwrap_err().starts_with("no buffer of "));
    }

    #[test]
    fn writes_to_a_disk_or_states_why_not() {
        let cpu = rt::allowed_cpus()[0];
        match writing(cpu, || 7) {
            Ok(measured) => assert_eq!(measured, 7),
            Err(why) => assert!(why.starts_with("no file on a disk in /var/tmp"), "{why}"),
        }
        assert!(file_on_disk("/dev/shm").is_none() && file_on_disk("/no/such/directory").is_none());
    }
}
