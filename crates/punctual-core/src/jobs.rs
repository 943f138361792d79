//! The functions that run the jobs of a level.

use crate::current::CurrentWorker;
use crate::level::Stamp;

/// Runs the job of a node. The arguments are the worker, the node, the job's start, if known, and
/// the context of the [`Jobs`]; returns the job's end, if it has read the clock.
///
/// # Safety
/// The calling thread occupies the level and has popped the node, which is one that this function
/// runs.
pub type Run = unsafe fn(CurrentWorker, u32, Stamp, *const ()) -> Stamp;

/// The functions that run the jobs of a level: one for all nodes, or one for each.
///
/// The executor calls one of them on a thread that occupies the level, once for each time a node
/// was queued by a spawn, a timer or a periodic task. It selects the function by the node's index,
/// in constant time for any number of tasks.
#[derive(Clone, Copy)]
pub struct Jobs {
    run: &'static [Run],
    /// 0 if one function serves all nodes.
    mask: u32,
    context: *const (),
}

// SAFETY: the context is null or a shared reference to a `Sync` value, see `of`.
unsafe impl Sync for Jobs {}
// SAFETY: as above.
unsafe impl Send for Jobs {}

impl Jobs {
    /// One function for all nodes, or one for each node.
    ///
    /// # Safety
    /// Each function, given a null context, requires nothing of its caller beyond its arguments and
    /// the contract of [`Run`].
    pub const unsafe fn by_node(run: &'static [Run]) -> Self {
        Self { run, mask: if run.len() == 1 { 0 } else { u32::MAX }, context: core::ptr::null() }
    }

    /// One closure for all nodes.
    pub const fn of<F: Fn(CurrentWorker, u32, Stamp) -> Stamp + Sync>(run: &'static F) -> Self {
        /// # Safety
        /// `context` is a `&'static F`.
        unsafe fn call<F: Fn(CurrentWorker, u32, Stamp) -> Stamp>(
            me: CurrentWorker,
            node: u32,
            now: Stamp,
            context: *const (),
        ) -> Stamp {
            // SAFETY: the context is a `&'static F`, by this function's contract.
            let run = unsafe { &*context.cast::<F>() };
            run(me, node, now)
        }
        Self { run: const { &[call::<F> as Run] }, mask: 0, context: core::ptr::from_ref(run).cast() }
    }

    /// Returns `true` if these functions serve a level of `nodes` nodes.
    pub(crate) const fn are_of(&self, nodes: usize) -> bool {
        if self.mask == 0 { !self.run.is_empty() } else { self.run.len() == nodes }
    }

    /// Runs the job of `node`.
    ///
    /// # Safety
    /// As for [`Run`]; the node is one of a level whose nodes these functions
    /// [serve](Self::are_of).
    #[inline]
    pub(crate) unsafe fn run(&self, me: CurrentWorker, node: u32, now: Stamp) -> Stamp {
        // SAFETY: the table has a function for each node, including this one, or a single one at
        // index 0.
        let run = unsafe { *self.run.get_unchecked((node & self.mask) as usize) };
        // SAFETY: by this function's contract, and the context belongs to the function, see
        // `by_node` and `of`.
        unsafe { run(me, node, now, self.context) }
    }
}
