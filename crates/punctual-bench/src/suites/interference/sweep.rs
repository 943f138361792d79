//! A thread on another CPU that repeatedly sweeps a buffer.

use std::hint::black_box;
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

/// Runs `measure` while an ordinary thread on `cpu` sweeps: from the end of its first pass through
/// the buffer.
///
/// # Errors
/// The thread cannot be pinned, or there is too little memory.
pub(super) fn sweeping<R>(sweep: Sweep, cpu: usize, measure: impl FnOnce() -> R) -> Result<R, String> {
    let (passes, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut buffer: Vec<u64> = Vec::new();
    let words = sweep.bytes / size_of::<u64>();
    buffer
        .try_reserve_exact(words)
        .map_err(|error| format!("no buffer of {} bytes: {error}", sweep.bytes))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let pinned = rt::pin(cpu);
            // Pages that were never written all map to one zero page.
            buffer.resize(words, 1);
            while pinned.is_ok() && !over.load(Ordering::Relaxed) {
                pass(&mut buffer, sweep);
                passes.fetch_add(1, Ordering::Relaxed);
            }
            pinned
        });
        while passes.load(Ordering::Relaxed) == 0 && !thread.is_finished() {
            std::thread::yield_now();
        }
        let measured = measure();
        over.store(true, Ordering::Relaxed);
        rt::join(thread).map_err(|error| format!("not pinned to CPU {cpu}: {error}"))?;
        Ok(measured)
    })
}

fn pass(buffer: &mut [u64], sweep: Sweep) {
    let words = buffer.iter_mut().step_by(sweep.stride / size_of::<u64>());
    match sweep.access {
        Access::Reads => drop(black_box(words.fold(0_u64, |sum, word| sum.wrapping_add(*word)))),
        Access::Writes => words.for_each(|word| *word = black_box(word.wrapping_add(1))),
    }
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
    }
}
