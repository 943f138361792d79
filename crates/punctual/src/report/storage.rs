//! Storage of the parts of a report whose size is not constant: on the heap, or without an
//! allocator in static memory of the board.

use core::fmt;
use core::ops::Deref;

use super::TaskReport;

#[cfg(not(feature = "alloc"))]
use self::fixed as storage;
#[cfg(feature = "alloc")]
use self::heap as storage;

pub(crate) use self::storage::Rows;

/// A text in a report or an error; dereferences to `str`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text(storage::Text);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        AsRef::as_ref(&self.0)
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(storage::Text::from(text))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// The tasks of a report, highest level first; dereferences to a slice.
#[derive(Default, PartialEq)]
pub struct Tasks(storage::Tasks);

impl Deref for Tasks {
    type Target = [TaskReport];

    fn deref(&self) -> &[TaskReport] {
        &self.0
    }
}

impl core::ops::DerefMut for Tasks {
    fn deref_mut(&mut self) -> &mut [TaskReport] {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a Tasks {
    type Item = &'a TaskReport;
    type IntoIter = core::slice::Iter<'a, TaskReport>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(feature = "alloc")]
mod heap {
    use alloc::borrow::Cow;
    use alloc::string::String;
    use alloc::vec::{self, Vec};

    use super::TaskReport;

    pub(super) type Text = Cow<'static, str>;
    pub(super) type Tasks = Vec<TaskReport>;

    /// The place of the tasks of a report, which is the heap.
    pub(crate) struct Rows;

    impl Rows {
        pub(crate) const fn new() -> Self {
            Self
        }

        /// Stores the tasks of a run; `count` is their largest number.
        pub(crate) fn fill(&self, _count: usize, tasks: impl Iterator<Item = TaskReport>) -> super::Tasks {
            super::Tasks(tasks.collect())
        }
    }

    impl From<String> for super::Text {
        fn from(text: String) -> Self {
            Self(text.into())
        }
    }

    impl From<Vec<TaskReport>> for super::Tasks {
        fn from(tasks: Vec<TaskReport>) -> Self {
            Self(tasks)
        }
    }

    impl Clone for super::Tasks {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl IntoIterator for super::Tasks {
        type Item = TaskReport;
        type IntoIter = vec::IntoIter<TaskReport>;

        fn into_iter(self) -> Self::IntoIter {
            self.0.into_iter()
        }
    }
}

#[cfg(not(feature = "alloc"))]
mod fixed {
    use core::alloc::Layout;
    use core::mem;
    use core::ops::{Deref, DerefMut};
    use core::ptr::{self, NonNull};
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::TaskReport;
    use crate::board::port as board;

    pub(super) type Text = &'static str;

    /// The memory of an app for the tasks of its report. A further run takes new memory while the
    /// report of an earlier one exists.
    pub(crate) struct Rows(AtomicPtr<TaskReport>);

    impl Rows {
        pub(crate) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }

        /// Stores at most `count` tasks; `count` is the same in each call.
        ///
        /// # Panics
        /// Panics if the board has no memory left.
        pub(crate) fn fill(
            &'static self,
            count: usize,
            tasks: impl Iterator<Item = TaskReport>,
        ) -> super::Tasks {
            let layout = Layout::array::<TaskReport>(count).expect("the tasks of an app fit into memory");
            let start = match NonNull::new(self.0.swap(ptr::null_mut(), Ordering::Acquire)) {
                Some(start) => start,
                None if layout.size() == 0 => NonNull::dangling(),
                None => board::memory(layout).expect("the board has memory for a report").cast(),
            };
            let mut length = 0;
            for task in tasks.take(count) {
                // SAFETY: the memory is large enough for `count` tasks, and only this function uses
                // it: it came from the board, or from a report that has been dropped.
                unsafe { start.add(length).write(task) };
                length += 1;
            }
            // SAFETY: that many tasks have been written, and nothing else refers to the memory
            // until this is dropped.
            let items = unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), length) };
            super::Tasks(Tasks { items, owner: Some(self) })
        }
    }

    /// Tasks in the memory of an app.
    #[derive(Default)]
    pub(crate) struct Tasks {
        items: &'static mut [TaskReport],
        owner: Option<&'static Rows>,
    }

    impl Deref for Tasks {
        type Target = [TaskReport];

        fn deref(&self) -> &[TaskReport] {
            self.items
        }
    }

    impl DerefMut for Tasks {
        fn deref_mut(&mut self) -> &mut [TaskReport] {
            self.items
        }
    }

    impl PartialEq for Tasks {
        fn eq(&self, other: &Self) -> bool {
            **self == **other
        }
    }

    impl Drop for Tasks {
        fn drop(&mut self) {
            if let Some(rows) = self.owner {
                // The values need no drop.
                rows.0.store(mem::take(&mut self.items).as_mut_ptr(), Ordering::Release);
            }
        }
    }
}
