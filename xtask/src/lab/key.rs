//! Names for what is kept: a hash of what it was made of.

use std::hash::Hasher;

use fnv::FnvHasher;

/// How many characters a name has.
pub(crate) const LENGTH: usize = 16;

/// The name of what is made of `parts`, in this order. It is the same in all versions of Rust.
pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = FnvHasher::default();
    for part in parts {
        // With its length, so that no two lists of parts run together.
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let name = |parts: &[&str]| of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(name(&["a", "b"]), name(&["a", "b"]));
        assert_eq!(name(&["a", "b"]).len(), LENGTH);
        for other in [&["a", "c"][..], &["ab"], &["", "ab"], &["b", "a"], &["a", "b", ""]] {
            assert_ne!(name(&["a", "b"]), name(other), "{other:?}");
        }
    }
}
