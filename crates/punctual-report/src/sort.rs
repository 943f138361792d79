//! Stable sorting that is compiled once, for lists that are not sorted often.
//!
//! The functions of slices are compiled for every type and every key. In a crate with many lists,
//! they are a seventh of its machine code, and of the time of its build.

use std::cmp::Ordering;

/// Sorts a list as [`slice::sort_by_key`] does.
///
/// ```
/// let mut tasks = [("log", 1), ("control", 3), ("filter", 1)];
/// punctual_report::sort::by_key(&mut tasks, |&(_, level)| std::cmp::Reverse(level));
/// assert_eq!(tasks, [("control", 3), ("log", 1), ("filter", 1)]);
/// ```
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    by(list, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a list as [`slice::sort_by`] does.
pub fn by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted(list.len(), &|a, b| compare(&list[a], &list[b]));
    // An element that is not in its place any more was swapped to where its place was filled from.
    for at in 0..order.len() {
        let mut from = order[at];
        while from < at {
            from = order[from];
        }
        order[at] = from;
        list.swap(at, from);
    }
}

/// Returns the indices of a list in the order of its elements.
fn sorted(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_slices_do() {
        // All lists of up to 6 elements with 4 keys; the index tells equal elements apart.
        for length in 0..=6_u32 {
            for number in 0..4_u32.pow(length) {
                let element = |at| (number / 4_u32.pow(at) % 4, at);
                let mut list: Vec<(u32, u32)> = (0..length).map(element).collect();
                let mut expected = list.clone();
                expected.sort_by_key(|&(key, _)| key);
                by_key(&mut list, |&(key, _)| key);
                assert_eq!(list, expected);
            }
        }
    }
}
