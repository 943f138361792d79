//! The figures of the half without Linux, for the report of the other one.

use core::cell::UnsafeCell;

/// How many tasks there is room for.
pub(super) const ROWS: usize = 64;

/// How long a name may be, in bytes.
pub(super) const NAME: usize = 40;

/// What stands for "none".
pub(super) const NONE: u64 = u64::MAX;

/// Written once by the half without Linux before its last stage, and read by the other one after that.
#[repr(C)]
pub(super) struct Figures(UnsafeCell<Table>);

// SAFETY: by what the type says of its use, and the release and acquire of the stage in between.
unsafe impl Sync for Figures {}

impl core::fmt::Debug for Figures {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Figures(..)")
    }
}

/// Every bit pattern is one.
#[repr(C)]
pub(super) struct Table {
    pub(super) elapsed: u64,
    pub(super) dropped_jobs: u64,
    /// How many tasks there are, also those without room here.
    pub(super) count: u64,
    pub(super) rows: [Row; ROWS],
}

/// A task; all times in ns.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Row {
    pub(super) name: [u8; NAME],
    pub(super) level: u8,
    pub(super) measured: u8,
    /// As [`OnEarly`](crate::model::OnEarly) is declared, from 1 on; 0 if there is none.
    pub(super) on_early: u8,
    pub(super) reserved: u8,
    pub(super) burst: u32,
    pub(super) period: u64,
    pub(super) deadline: u64,
    pub(super) min_interval: u64,
    pub(super) jobs: u64,
    pub(super) overruns: u64,
    pub(super) misses: u64,
    pub(super) early: u64,
    /// Of jitter, response and execution: maximum and mean.
    pub(super) jitter: [u64; 2],
    pub(super) response: [u64; 2],
    pub(super) execution: [u64; 2],
}

impl Figures {
    /// The table, for the one who writes it.
    #[cfg(not(feature = "std"))]
    pub(super) fn table(&self) -> *mut Table {
        self.0.get()
    }

    /// What was written.
    ///
    /// # Safety
    /// The half without Linux has come to its last stage, which was seen.
    #[cfg(feature = "std")]
    pub(super) unsafe fn read(&self) -> &Table {
        // SAFETY: nobody writes any more, by this function's contract, and every bit pattern is a table.
        unsafe { &*self.0.get() }
    }
}
