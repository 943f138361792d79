//! Mutexes under the original Priority Ceiling Protocol.
//!
//! For threads of different priorities that share data on any number of CPUs. A thread waits for at
//! most one critical section of a lower thread, regardless of which mutexes it locks, and threads
//! that nest locks never deadlock. An uncontended mutex costs two atomic instructions and no system
//! call.
//!
//! Every mutex has a *ceiling*, the highest priority of the threads that lock it. A thread is
//! granted a lock only if its priority is above the ceilings of all mutexes of the group that other
//! threads hold. If not, it waits for the thread that holds the highest of these ceilings, which
//! inherits its priority in the meantime. The group checks the protocol's assumption: a thread
//! whose declared priority is above a mutex's ceiling gets an error.
//!
//! ```
//! use punctual_sync::{PcpLockError, PcpGroup, PcpMutex};
//!
//! let group = PcpGroup::new();
//! let speed = PcpMutex::new(&group, 3, 1.0);
//! let angle = PcpMutex::new(&group, 3, 0.0);
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let low = group.join(1).unwrap();
//!         speed.lock(&low, |speed| angle.lock(&low, |angle| *angle += *speed)).unwrap().unwrap();
//!     });
//!     scope.spawn(|| {
//!         let high = group.join(3).unwrap();
//!         // In the opposite order: would deadlock with any other mutex.
//!         angle.lock(&high, |angle| speed.lock(&high, |speed| *speed -= *angle)).unwrap().unwrap();
//!     });
//! });
//!
//! let higher = group.join(4).unwrap();
//! assert_eq!(speed.lock(&higher, |_| ()), Err(PcpLockError::AboveCeiling { priority: 4, ceiling: 3 }));
//! ```
//!
//! # Real time
//!
//! | | system calls | blocks |
//! |---|---|---|
//! | lock that the test grants | none | no |
//! | lock that it refuses | one | for one critical section of a lower thread, or for those of higher ones |
//! | unlock | one per thread that waits for this one | no |
//!
//! More calls are possible if another thread is in the middle of a decision of the same group: some
//! dozens of instructions, with priority inheritance. Nothing spins and nothing allocates. The
//! length of a critical section is not limited, but other threads wait for it.
//!
//! # Panics, leaks, forks
//!
//! A panic in a critical section unlocks during unwinding and does not poison, as with RTIC's
//! resources: the next thread finds the value as the panic left it. There is no guard to leak. A
//! forked child has only the thread that forked, so mutexes held by other threads at that moment
//! stay locked in the child; a member from before the fork fails in the child when it has to wait
//! or be waited for: join a new group.
//!
//! # Source
//!
//! L. Sha, R. Rajkumar, J. P. Lehoczky, *Priority inheritance protocols: an approach to real-time
//! synchronization*, IEEE Transactions on Computers 39(9), 1990, section IV.

mod group;
mod lock_table;
mod mutex;

pub use group::{Member, PcpGroup};
pub use mutex::PcpMutex;

/// A priority or a ceiling plus one; 0 is below all of them.
type Rank = u32;

#[inline(always)]
const fn rank(priority: u8) -> Rank {
    priority as Rank + 1
}

/// The reason a thread did not become a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The group has the maximum number of members.
    Full,
    /// The calling thread is a member already, with its first declared priority.
    AlreadyMember,
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            JoinError::Full => {
                write!(f, "the group is full with {} members", lock_table::MEMBERS)
            }
            JoinError::AlreadyMember => f.write_str("this thread is a member of the group already"),
        }
    }
}

impl core::error::Error for JoinError {}

/// The reason a mutex was not locked. The closure has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PcpLockError {
    /// The thread's declared priority is above the mutex's ceiling, which must be the highest
    /// priority that locks it.
    AboveCeiling {
        /// The member's declared priority.
        priority: u8,
        /// The mutex's ceiling.
        ceiling: u8,
    },
    /// The calling thread holds this mutex already.
    Reentrant,
    /// The member belongs to another group than the mutex.
    ForeignMember,
    /// A deadlock. This cannot happen within a group: locks of other groups or of other kinds are
    /// part of the cycle.
    Deadlock,
    /// The kernel refused to wait, with this error number.
    Refused(i32),
}

impl core::fmt::Display for PcpLockError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PcpLockError::AboveCeiling { priority, ceiling } => write!(
                f,
                "priority {priority} is above the mutex's ceiling {ceiling}: \
                 create the mutex with the highest priority of the threads that lock it"
            ),
            PcpLockError::Reentrant => f.write_str("this thread holds the mutex already"),
            PcpLockError::ForeignMember => f.write_str("the member belongs to another group than the mutex"),
            PcpLockError::Deadlock => {
                f.write_str("threads would deadlock through locks outside of the group")
            }
            PcpLockError::Refused(number) => write!(f, "the kernel refused to wait, error number {number}"),
        }
    }
}

impl core::error::Error for PcpLockError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lowest_priority_ranks_above_no_holder() {
        assert!(rank(0) > 0 && rank(1) > rank(0));
    }
}
