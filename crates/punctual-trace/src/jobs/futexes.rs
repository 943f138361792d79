//! Purpose of a futex, as far as calls reveal it: a lock, or a condition that a thread waits for.

/// Number of futex words remembered as conditions. A new one replaces an old one.
const WORDS: usize = 1024;

const COMMAND: u32 = 0x7f;
const WAIT: u32 = 0;
const WAKE: u32 = 1;
const REQUEUE: u32 = 3;
const CMP_REQUEUE: u32 = 4;
const LOCK_PI: u32 = 6;
const WAIT_BITSET: u32 = 9;
const WAKE_BITSET: u32 = 10;
const WAIT_REQUEUE_PI: u32 = 11;
const CMP_REQUEUE_PI: u32 = 12;
const LOCK_PI2: u32 = 13;

/// Purpose of a futex that a thread waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutexRole {
    /// A lock, because it uses priority inheritance.
    Lock,
    /// Presumably a lock: the word is 2, which marks contention in the mutexes of glibc, musl and
    /// Rust, or contains the TID of an owner.
    LikelyLock,
    /// Presumably a condition variable, a semaphore or the like: the word has another value, or it
    /// has been used as no mutex is.
    LikelyCondition,
    /// A condition variable: its waiters are requeued to a mutex.
    Condition,
}

impl FutexRole {
    /// Returns whether it is a lock, as far as can be known.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Lock | Self::LikelyLock)
    }

    /// Returns whether that is certain.
    #[must_use]
    pub fn is_certain(self) -> bool {
        matches!(self, Self::Lock | Self::Condition)
    }
}

/// Knowledge about futex words from calls.
#[derive(Debug)]
pub(super) struct Futexes {
    conditions: Box<[u64]>,
}

impl Futexes {
    pub(super) fn new() -> Self {
        Self { conditions: vec![0; WORDS].into_boxed_slice() }
    }

    /// Returns the purpose of the futex of a call; `None` if the call does not wait.
    pub(super) fn call(&mut self, word: u64, operation: u32, value: u32) -> Option<FutexRole> {
        match operation & COMMAND {
            LOCK_PI | LOCK_PI2 => Some(FutexRole::Lock),
            WAIT_REQUEUE_PI => Some(FutexRole::Condition),
            WAIT | WAIT_BITSET => {
                if !(value == 2 || has_owner(value)) {
                    self.note_condition(word);
                }
                let condition = self.conditions[place(word)] == word;
                Some(if condition { FutexRole::LikelyCondition } else { FutexRole::LikelyLock })
            }
            // Unlocking a mutex wakes one thread, never more.
            WAKE | WAKE_BITSET if value > 1 => self.note_condition(word),
            REQUEUE | CMP_REQUEUE | CMP_REQUEUE_PI => self.note_condition(word),
            _ => None,
        }
    }

    fn note_condition(&mut self, word: u64) -> Option<FutexRole> {
        self.conditions[place(word)] = word;
        None
    }
}

fn place(word: u64) -> usize {
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - WORDS.trailing_zeros())) as usize
}

/// Returns whether the word contains `FUTEX_WAITERS` and a TID, as in a mutex that records its
/// owner.
fn has_owner(value: u32) -> bool {
    const WAITERS: u32 = 1 << 31;
    const OWNER_DIED: u32 = 1 << 30;
    const MAX_THREAD: u32 = 1 << 22;
    value & WAITERS != 0 && (1..=MAX_THREAD).contains(&(value & !(WAITERS | OWNER_DIED)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_locks_from_conditions() {
        let mut futexes = Futexes::new();
        let private = 128;
        assert_eq!(futexes.call(1, LOCK_PI | private, 0), Some(FutexRole::Lock));
        assert_eq!(futexes.call(1, WAIT_REQUEUE_PI, 7), Some(FutexRole::Condition));
        assert_eq!(futexes.call(2, WAIT | private, 2), Some(FutexRole::LikelyLock));
        assert_eq!(futexes.call(3, WAIT_BITSET, 0x8000_0000 | 411), Some(FutexRole::LikelyLock));
        for value in [0, 1, 3, u32::MAX] {
            assert_eq!(futexes.call(4, WAIT, value), Some(FutexRole::LikelyCondition));
        }
        // A counter that reaches 2 does not become a mutex.
        assert_eq!(futexes.call(4, WAIT, 2), Some(FutexRole::LikelyCondition));
        // Unlocking wakes one thread, never all.
        assert_eq!(futexes.call(2, WAKE, 1), None);
        assert_eq!(futexes.call(2, WAIT, 2), Some(FutexRole::LikelyLock));
        assert_eq!(futexes.call(2, WAKE | private, i32::MAX as u32), None);
        assert_eq!(futexes.call(2, WAIT, 2), Some(FutexRole::LikelyCondition));
        assert_eq!(futexes.call(5, CMP_REQUEUE, 1), None);
        assert_eq!(futexes.call(5, WAIT, 2), Some(FutexRole::LikelyCondition));
    }
}
