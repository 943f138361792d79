//! The restartable sequences that change a [`BiasedWord`], see `rseq(2)` of librseq.
//!
//! Through a pointer in its record (`rseq_cs`) to a descriptor, a thread informs the kernel which
//! instructions are a sequence. When the kernel returns to the thread after it was preempted or
//! moved, or delivers a signal to it, and the thread is within the sequence, the thread continues
//! at the abort handler, which is preceded by the signature that the C library has registered
//! (`RSEQ_SIG`, 0x53053053 on x86-64). Only the last instruction of a sequence changes anything, so
//! an aborted sequence has done nothing.
//!
//! The descriptor is part of the program. The pointer is cleared after the sequence, so that the
//! kernel does not read it in a library that has been unloaded.

use std::arch::asm;

use super::BiasedWord;

/// Returned instead of the word if the sequence was aborted, or has not found the home CPU or the
/// gate 0. If the word itself has this value, the result is an unnecessary slow path.
pub(super) const FAILED: u64 = u64::MAX;

/// Result of a sequence with a locked instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The word has been changed.
    Done,
    /// The word does not have the expected value.
    Changed,
    /// The kernel has aborted it.
    Aborted,
    /// This is not the home CPU.
    Elsewhere,
}

/// Changes the word from `from` to `to` by a plain store, if this is the home CPU and the gate is
/// 0; returns the previous word, or [`FAILED`].
///
/// # Safety
/// The C library has registered the record of this thread, if any, at `cell.rseq` from the thread
/// pointer, with the signature `RSEQ_SIG`.
#[inline(always)]
pub(super) unsafe fn store(cell: &BiasedWord, from: u64, to: u64) -> u64 {
    let word;
    let rseq = cell.rseq.load(super::Ordering::Relaxed);
    // SAFETY: by this function's contract, the record belongs to the calling thread, and `rseq_cs`
    // (8) to the code that is in a sequence. `cpu_id` (4) is negative in a record that the kernel
    // does not know, and so not `home`. The word is an atomic, which is loaded and stored as a
    // whole; `cell` lives longer. The stack is not used.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "2:",
            ".long 0, 0",
            ".quad 3f, 4f - 3f, 5f",
            ".popsection",
            "lea {word}, [rip + 2b]",
            "mov qword ptr fs:[{rseq} + 8], {word}",
            "3:",
            "mov {word:e}, dword ptr fs:[{rseq} + 4]",
            "cmp {word:e}, dword ptr [{cell} + 12]",
            "jne 6f",
            "cmp dword ptr [{cell} + 8], 0",
            "jne 6f",
            "mov {word}, qword ptr [{cell}]",
            "cmp {word}, {from}",
            "jne 4f",
            "mov qword ptr [{cell}], {to}",
            "4:",
            "mov qword ptr fs:[{rseq} + 8], 0",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5:",
            "6:",
            "mov {word}, -1",
            "jmp 4b",
            ".popsection",
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            from = in(reg) from,
            to = in(reg) to,
            word = out(reg) word,
            options(nostack),
        );
    }
    word
}

/// Changes the word from `from` to `to` by a locked instruction, if this is the home CPU.
///
/// # Safety
/// As for [`store`].
#[inline(never)]
pub(super) unsafe fn locked(cell: &BiasedWord, from: u64, to: u64) -> End {
    let (changed, end): (u8, u64);
    let rseq = cell.rseq.load(super::Ordering::Relaxed);
    // SAFETY: as in `store`.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "2:",
            ".long 0, 0",
            ".quad 3f, 4f - 3f, 5f",
            ".popsection",
            "lea {end}, [rip + 2b]",
            "mov qword ptr fs:[{rseq} + 8], {end}",
            "3:",
            "mov {end:e}, dword ptr fs:[{rseq} + 4]",
            "cmp {end:e}, dword ptr [{cell} + 12]",
            "mov {end:e}, 1",
            "jne 4f",
            "mov {end:e}, 0",
            "lock cmpxchg qword ptr [{cell}], {to}",
            "4:",
            "setne {changed}",
            "7:",
            "mov qword ptr fs:[{rseq} + 8], 0",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5:",
            "mov {end:e}, 2",
            "jmp 7b",
            ".popsection",
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            to = in(reg) to,
            inout("rax") from => _,
            end = out(reg) end,
            changed = out(reg_byte) changed,
            options(nostack),
        );
    }
    match (end, changed) {
        (0, 0) => End::Done,
        (0, _) => End::Changed,
        (1, _) => End::Elsewhere,
        _ => End::Aborted,
    }
}
