//! Paths of the app's code.

use syn::{Path, PathSegment};

/// Returns the last two segments, such as `task` and `spawn` of `app::task::spawn`.
pub(crate) fn last_two(path: &Path) -> Option<(&PathSegment, &PathSegment)> {
    let mut segments = path.segments.iter().rev();
    let (last, owner) = (segments.next()?, segments.next()?);
    Some((owner, last))
}
