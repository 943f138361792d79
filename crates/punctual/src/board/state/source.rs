//! Interrupts that release tasks.

use core::cell::Cell;
use core::ptr;

use crate::state::partition::PartitionState;

/// Number of supported interrupts, numbered from 0.
pub(crate) const INTERRUPTS: usize = 192;

/// An interrupt with a task.
pub trait Source: Sync {
    /// Returns its number.
    fn number(&self) -> u32;

    /// Returns the partition of its task.
    fn partition(&self) -> &'static PartitionState;

    /// Returns the reaction to it.
    fn reaction(&'static self) -> Reaction;
}

/// Reaction to an interrupt. Not a method of [`Source`], which would cost the handler one more
/// instruction.
#[derive(Clone, Copy)]
pub struct Reaction {
    task: *const (),
    react: unsafe fn(&'static Place),
}

impl Reaction {
    /// Creates a reaction that calls `react` for the task at `task`, which may be null.
    pub(crate) const fn of(task: *const (), react: unsafe fn(&Place)) -> Self {
        Self { task, react }
    }

    /// Disables the interrupt, releases a job, and runs it if nothing precedes it.
    ///
    /// # Safety
    /// Called by the handler of the interrupt, with interrupts masked, while the app runs. `self`
    /// is stored in `place`.
    #[inline(always)]
    pub(crate) unsafe fn take_place(self, place: &'static Place) {
        // SAFETY: the task there has the type that the function requires, by `reaction`; the rest
        // is this function's contract.
        unsafe { (self.react)(place) }
    }
}

/// Reaction to one interrupt while an app runs.
pub(crate) struct Place(Cell<Option<Reaction>>);

impl Place {
    pub(crate) const fn empty() -> Self {
        Self(Cell::new(None))
    }

    pub(crate) fn set(&self, reaction: Reaction) {
        self.0.set(Some(reaction));
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<Reaction> {
        self.0.get()
    }

    /// Returns the task of the interrupt.
    #[inline(always)]
    pub(crate) fn task(&self) -> *const () {
        self.0.get().map_or(ptr::null(), |reaction| reaction.task)
    }
}
