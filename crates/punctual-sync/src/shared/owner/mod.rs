//! Ownership of parts of a structure by processes, and the handling of their death.
//!
//! A process can be killed at any instruction, and its parts of shared memory remain as they were.
//! So every part that one process at a time may use (an end, a slot, a ticket) names its owner in
//! the word that assigns it: a reader of the word knows which process to ask the kernel about. It
//! asks only after a wait has timed out or found no room.
//!
//! * An [`Owner`] is a PID and the start time of that process, in one word. A process that got the
//!   PID of a dead one started later, so it is not mistaken for it.
//! * A [`Home`] is the PID namespace of the process that initialized a structure. PIDs are
//!   meaningful only there, so processes of another namespace own parts as [`ANONYMOUS`]: their
//!   death is not noticed, and they notice no other's.
//! * A [`Claim`] is a part with an owner. [`Peers`] gives the processes that use a structure short
//!   numbers, for words that are too small for an owner.
//!
//! Structures that were not created by `init_at` belong to one process. They have no home, all
//! their parts are owned anonymously, and the kernel is never asked: unwinding returns the parts,
//! and leaked ones stay leaked.
//!
//! Without the feature `std` there is no kernel to ask, and processes own parts anonymously as
//! well.

use core::fmt;

use crate::Taken;
use crate::atomic::{AtomicU64, Ordering, const_array, const_new};

#[cfg(all(feature = "std", not(loom)))]
mod process;

#[cfg(loom)]
pub(super) mod process {
    //! Model threads that represent processes.

    use super::{ANONYMOUS, Owner};
    use crate::atomic::{AtomicU32, Ordering};

    loom::thread_local! {
        static PROCESS: std::cell::Cell<u32> = std::cell::Cell::new(0);
    }
    loom::lazy_static! {
        static ref DEAD: AtomicU32 = AtomicU32::new(0);
    }

    /// Makes the calling thread process `number`, 1 to 31.
    pub(crate) fn begin(number: u32) {
        PROCESS.with(|process| process.set(number));
    }

    /// Kills the calling thread's process. The thread does nothing afterwards.
    pub(crate) fn die() {
        PROCESS.with(|process| DEAD.fetch_or(1 << process.get(), Ordering::AcqRel));
    }

    pub(super) fn namespace() -> u32 {
        PROCESS.with(|process| u32::from(process.get() != 0))
    }

    pub(super) fn identity() -> (Owner, u32) {
        let process = PROCESS.with(std::cell::Cell::get);
        (if process == 0 { ANONYMOUS } else { Owner::new(process, 0) }, 1)
    }

    pub(super) fn has_died(owner: Owner) -> bool {
        DEAD.load(Ordering::Acquire) & 1 << owner.pid() != 0
    }
}

#[cfg(not(feature = "std"))]
mod process {
    //! Without `std` no process can be identified.

    use super::{ANONYMOUS, Owner};

    pub(super) fn namespace() -> u32 {
        0
    }

    pub(super) fn identity() -> (Owner, u32) {
        (ANONYMOUS, 0)
    }

    pub(super) fn has_died(_: Owner) -> bool {
        false
    }
}

/// A process: its PID, then its start in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(u64);

/// PIDs are below 2²² on Linux, and 2⁴² ticks are a thousand years.
const START_BITS: u32 = 42;

const NO_OWNER: Owner = Owner(0);
/// An owner that cannot be identified, so that its death goes unnoticed. No process has PID 0.
const ANONYMOUS: Owner = Owner(1);

impl Owner {
    #[cfg(feature = "std")]
    pub(super) fn new(pid: u32, start: u64) -> Self {
        Self(u64::from(pid) << START_BITS | start & ((1 << START_BITS) - 1))
    }

    fn pid(self) -> u32 {
        (self.0 >> START_BITS) as u32
    }
}

/// The PID namespace in which owners of a structure can be identified, or none.
///
/// Written only when the structure is created.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Home(u32);

impl Home {
    /// The home of a structure of one process.
    pub(super) const NOWHERE: Self = Self(0);

    /// The home of a structure in shared memory that was created by an unidentified process.
    const UNKNOWN: u32 = u32::MAX;

    /// Returns the home of a structure that the calling process places in shared memory.
    #[cfg(not(loom))]
    pub(super) fn here() -> Self {
        Self(match process::namespace() {
            0 => Self::UNKNOWN,
            namespace => namespace,
        })
    }

    /// Returns `true` if the structure belongs to a single process, so that its futexes are
    /// private.
    #[cfg(all(feature = "std", not(loom)))]
    pub(super) fn is_private(&self) -> bool {
        self.0 == Self::NOWHERE.0
    }

    /// Returns `true` if owners may die before the structure.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.namespace() != 0
    }

    #[inline(always)]
    fn namespace(&self) -> u32 {
        // A model's structures are shared if their threads represent processes.
        #[cfg(loom)]
        return process::namespace();
        #[cfg(not(loom))]
        return if self.0 == Self::UNKNOWN { 0 } else { self.0 };
    }

    /// Returns the calling process. In shared memory this asks the kernel once in the lifetime of a
    /// process.
    #[inline]
    fn me(&self) -> Owner {
        if !self.is_shared() {
            return ANONYMOUS;
        }
        let (owner, namespace) = process::identity();
        if namespace == self.namespace() { owner } else { ANONYMOUS }
    }

    /// Returns `true` if `owner` is certainly dead, according to the kernel. Makes some system
    /// calls, unless it is the caller itself.
    fn has_died(&self, owner: Owner) -> bool {
        let me = self.me();
        // A process that cannot identify itself cannot ask about others: their PIDs may belong to
        // other processes here.
        me != ANONYMOUS && ![NO_OWNER, ANONYMOUS, me].contains(&owner) && process::has_died(owner)
    }
}

/// The reason a part of a structure was not taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeOverError {
    /// The process with this PID owns it and is alive.
    Alive(u32),
    /// Its owner cannot be identified: the structure is not in shared memory, or the process had no
    /// `/proc`, no `std`, another PID namespace, or a time namespace.
    Unknown,
}

impl fmt::Display for TakeOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive(pid) => write!(f, "process {pid} owns it and is alive: wait until it has ended"),
            Self::Unknown => f.write_str(
                "the owner cannot be identified: if it is known to have died, \
                 use the unchecked form",
            ),
        }
    }
}

impl core::error::Error for TakeOverError {}

/// The right to a part of a structure that one process at a time may use, with its holder.
///
/// A thread that takes the claim sees all actions of its previous holder.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Claim(AtomicU64);

impl Claim {
    const_new! {
        pub(super) fn new() -> Self {
            Self(AtomicU64::new(NO_OWNER.0))
        }
    }

    /// Takes the claim if it is free.
    pub(super) fn take(&self, home: &Home) -> Result<(), Taken> {
        if self.exchange(NO_OWNER, home.me()) { Ok(()) } else { Err(Taken) }
    }

    /// Takes the claim if it is free, or if its owner is dead.
    pub(super) fn take_over(&self, home: &Home) -> Result<(), TakeOverError> {
        loop {
            // Relaxed: the exchange acquires.
            let owner = Owner(self.0.load(Ordering::Relaxed));
            if owner != NO_OWNER && !home.has_died(owner) {
                let is_known = owner != ANONYMOUS && home.me() != ANONYMOUS;
                return Err(if is_known {
                    TakeOverError::Alive(owner.pid())
                } else {
                    TakeOverError::Unknown
                });
            }
            // If it fails, another process took it over first; that one is checked next.
            if self.exchange(owner, home.me()) {
                return Ok(());
            }
        }
    }

    /// Takes the claim from its owner only if the owner is dead.
    #[cfg(feature = "std")]
    pub(super) fn inherit(&self, home: &Home) -> bool {
        // Relaxed: the exchange acquires.
        let owner = Owner(self.0.load(Ordering::Relaxed));
        home.has_died(owner) && self.exchange(owner, home.me())
    }

    /// Takes the claim regardless of its owner.
    pub(super) fn seize(&self, home: &Home) {
        self.0.store(home.me().0, Ordering::Relaxed);
    }

    /// Returns `true` if the calling process has the claim. In the child of a fork, the claims that
    /// it inherited are the parent's.
    pub(super) fn is_own(&self, home: &Home) -> bool {
        // Relaxed: a caller that has the claim took it itself.
        self.0.load(Ordering::Relaxed) == home.me().0
    }

    /// Returns the claim, if the calling process has it.
    pub(super) fn give_back(&self, home: &Home) {
        if self.is_own(home) {
            // Release: pairs with the acquire in `exchange`.
            self.0.store(NO_OWNER.0, Ordering::Release);
        }
    }

    /// Returns `true` if the claim has an owner. Orders nothing; use [`take`](Self::take) for that.
    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NO_OWNER.0
    }

    /// Sets the owner, as if that process had taken the claim.
    #[cfg(all(test, not(loom)))]
    pub(super) fn give_to(&self, owner: Owner) {
        self.0.store(owner.0, Ordering::Relaxed);
    }

    fn exchange(&self, from: Owner, to: Owner) -> bool {
        self.0.compare_exchange(from.0, to.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// The maximum number of processes that a structure can number.
const PEERS: usize = if cfg!(loom) { 3 } else { 32 };

/// A process as a number: 0 means none, and [`Peers::ANONYMOUS`] an unidentified one.
pub(super) type Peer = u32;

/// The processes that have used a structure.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Peers {
    home: Home,
    /// The owner at index `i` is the peer `i + 2`. A process may have several entries.
    owners: [AtomicU64; PEERS],
}

impl Peers {
    pub(super) const ANONYMOUS: Peer = 1;
    const FIRST: Peer = 2;

    const_new! {
        /// Creates the peers of a structure of one process, which are anonymous.
        pub(super) fn new() -> Self {
            Self { home: Home::NOWHERE, owners: const_array![AtomicU64::new(NO_OWNER.0); PEERS] }
        }
    }

    /// Creates the peers of a structure in shared memory, initially none.
    #[cfg(not(loom))]
    pub(super) fn shared() -> Self {
        Self { home: Home::here(), ..Self::new() }
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the calling process, or `None` if there are too many: then [`forget`](Self::forget)
    /// the dead ones. Calls `newcomer` if the process was not among the peers.
    #[inline(always)]
    pub(super) fn me(&self, newcomer: impl FnOnce()) -> Option<Peer> {
        if self.home.is_shared() { self.find_own_member(newcomer) } else { Some(Self::ANONYMOUS) }
    }

    fn find_own_member(&self, newcomer: impl FnOnce()) -> Option<Peer> {
        let me = self.home.me();
        if me == ANONYMOUS {
            return Some(Self::ANONYMOUS);
        }
        // Relaxed: an entry with this process's PID was made by it, or by one of its threads that
        // may repeat this.
        let is_me = |owner: &AtomicU64| owner.load(Ordering::Relaxed) == me.0;
        if let Some(index) = self.owners.iter().position(is_me) {
            return Some(index as Peer + Self::FIRST);
        }
        newcomer();
        // Relaxed: publishes no data. A thread that reads the number in a word and does not find
        // the owner here yet considers it alive, and asks again after its next wait has timed out.
        // Another thread of the process may have entered it in the meantime; a second entry would
        // take the number of another process.
        let enter = |owner: &AtomicU64| match owner.compare_exchange(
            NO_OWNER.0,
            me.0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => true,
            Err(found) => found == me.0,
        };
        self.owners.iter().position(enter).map(|index| index as Peer + Self::FIRST)
    }

    /// Returns `true` if the calling process has this number, which it does not inherit by a fork.
    #[inline]
    pub(super) fn is_own(&self, peer: Peer) -> bool {
        // Relaxed: a caller that has the number entered itself.
        let owner =
            || Some(self.owners.get(peer.checked_sub(Self::FIRST)? as usize)?.load(Ordering::Relaxed));
        peer == Self::ANONYMOUS || owner() == Some(self.home.me().0)
    }

    /// Returns `true` if the process with this number is dead.
    pub(super) fn has_died(&self, peer: Peer) -> bool {
        self.dead_peer(peer).is_some()
    }

    fn dead_peer(&self, number: Peer) -> Option<DeadPeer> {
        let index = number.checked_sub(Self::FIRST)?;
        let owner = Owner(self.owners.get(index as usize)?.load(Ordering::Relaxed));
        self.home.has_died(owner).then_some(DeadPeer { number, owner })
    }

    /// Returns the dead peers.
    pub(super) fn dead(&self) -> impl Iterator<Item = DeadPeer> {
        (Self::FIRST..Self::FIRST + PEERS as Peer).filter_map(|number| self.dead_peer(number))
    }

    /// Frees the number of a dead process that the structure no longer refers to.
    pub(super) fn forget(&self, dead: DeadPeer) {
        let owner = &self.owners[(dead.number - Self::FIRST) as usize];
        // Fails if another process has done so: then the number may belong to a living one.
        let _ = owner.compare_exchange(dead.owner.0, NO_OWNER.0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A process that was found dead, with the number that it had.
#[derive(Debug)]
pub(super) struct DeadPeer {
    pub(super) number: Peer,
    owner: Owner,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_reused_process_ids_by_start_time() {
        let last = (1 << START_BITS) - 1;
        for start in [0, 1, 2, 1 << 41, last] {
            assert_eq!(Owner::new(4, start).pid(), 4);
            assert_ne!(Owner::new(4, start), Owner::new(4, start ^ 1));
        }
        assert_ne!(Owner::new(4, 0), Owner::new(4, 1 << 41));
        assert_eq!(
            Owner::new(4, last + 1),
            Owner::new(4, 0),
            "excess bits are cut off and do not change the PID"
        );
    }

    #[test]
    fn gives_back_only_its_own_claim() {
        let claim = Claim(AtomicU64::new(Owner::new(1, 7).0));
        claim.give_back(&Home::NOWHERE);
        assert!(claim.is_taken(), "another process has taken it over");
        claim.seize(&Home::NOWHERE);
        claim.give_back(&Home::NOWHERE);
        assert!(!claim.is_taken());
    }

    #[test]
    fn sharing_with_unidentified_process_is_not_private() {
        let unknown = Home(Home::UNKNOWN);
        assert!(!unknown.is_private() && !unknown.is_shared() && unknown.me() == ANONYMOUS);
        assert!(Home::NOWHERE.is_private() && !Home::NOWHERE.is_shared());
    }

    /// A process that had this one's PID before.
    fn dead() -> Owner {
        Owner(Home::here().me().0 ^ 1)
    }

    fn elsewhere() -> Home {
        Home(Home::here().0 ^ 1)
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn processes_without_identity_report_no_deaths() {
        assert!(Home::here().has_died(dead()));
        for home in [Home::NOWHERE, elsewhere()] {
            assert!(!home.has_died(dead()), "{home:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn owner_that_cannot_be_queried_is_unknown() {
        let here = Home::here();
        for (home, owner) in [(&here, ANONYMOUS), (&Home::NOWHERE, here.me()), (&elsewhere(), dead())] {
            let claim = Claim(AtomicU64::new(owner.0));
            assert_eq!(claim.take_over(home), Err(TakeOverError::Unknown), "{home:?} {owner:?}");
        }
        let claim = Claim(AtomicU64::new(here.me().0));
        assert_eq!(claim.take_over(&here), Err(TakeOverError::Alive(std::process::id())));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn process_of_other_namespace_is_anonymous() {
        let peers = Peers { home: elsewhere(), ..Peers::new() };
        assert_eq!(peers.me(|| panic!("not entered")), Some(Peers::ANONYMOUS));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn threads_of_one_process_share_its_number() {
        let peers = Peers::shared();
        let mut others = None;
        // Another thread enters the process while this one checks which processes are alive.
        let mine = peers.me(|| others = peers.me(|| ()));
        assert_eq!((mine, others), (Some(Peers::FIRST), Some(Peers::FIRST)));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn every_peer_is_asked_about() {
        let peers = Peers { owners: [const { AtomicU64::new(0) }; PEERS], ..Peers::shared() };
        assert_eq!(peers.dead().count(), 0);
        peers.owners.iter().for_each(|owner| owner.store(dead().0, Ordering::Relaxed));
        let numbers = peers.dead().map(|dead| dead.number);
        assert!(numbers.eq(Peers::FIRST..Peers::FIRST + PEERS as Peer));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for its identity")]
    fn forgets_no_living_process_with_number_of_dead_one() {
        let peers = Peers::shared();
        peers.owners[0].store(dead().0, Ordering::Relaxed);
        let [first, second] = [(); 2].map(|()| peers.dead().next().expect("one is dead"));
        peers.forget(first);
        let me = peers.me(|| ());
        assert_eq!(me, Some(second.number));
        // Found dead before another process forgot it and this one got its number.
        peers.forget(second);
        assert_eq!(peers.me(|| panic!("it is a peer already")), me);
    }
}
