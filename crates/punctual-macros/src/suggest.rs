//! Suggestions for names that do not exist, or exist twice.

use syn::Ident;

/// Returns "; did you mean `x`?" if there is a similar name, and the names that `place` declares.
pub(crate) fn hint<'a>(name: &Ident, place: &str, declared: impl Iterator<Item = &'a Ident>) -> String {
    let declared: Vec<String> = declared.map(Ident::to_string).collect();
    let name = name.to_string();
    let meant = match nearest(&name, declared.iter().map(String::as_str)) {
        Some(other) => format!("; did you mean `{other}`?"),
        None => String::new(),
    };
    if declared.is_empty() {
        return format!("{meant}; {place} declares none");
    }
    let list = list(declared.iter().map(String::as_str));
    let stop = if meant.is_empty() { ";" } else { "" };
    format!("{meant}{stop} {place} declares {list}")
}

/// Formats a list of names for an error.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the name that was probably meant: one within a few edits of `name`, or that continues
/// it.
pub(crate) fn nearest<'a>(name: &str, declared: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits = |other: &str| match distance(&name.to_lowercase(), &other.to_lowercase()) {
        edits if edits > 1 && name.len() > 2 && (other.starts_with(name) || name.starts_with(other)) => 1,
        edits => edits,
    };
    let (edits, other) = declared.map(|other| (edits(other), other)).min()?;
    // A name of one or two letters is within two edits of every short one.
    (edits <= 2 && edits < name.chars().count()).then_some(other)
}

/// Returns the message for a second field of one name.
pub(crate) fn declared_twice(kind: &str, name: &Ident) -> String {
    format!(
        "the {kind} resource `{name}` is declared twice; rename one, or give both mutually \
         exclusive `#[cfg]`s"
    )
}

/// Returns the message for a name that a condition removes.
pub(crate) fn left_out(name: &Ident) -> String {
    format!("a `#[cfg]` removes `{name}` from this build; give this entry the same `#[cfg]`")
}

/// Returns the Levenshtein distance: the number of insertions, deletions and replacements that turn
/// `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("count", "count"), 0);
        assert_eq!(distance("cuont", "count"), 2);
        assert_eq!(distance("coun", "count"), 1);
        assert_eq!(distance("", "count"), 5);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_similar_name() {
        let ident = |name| Ident::new(name, proc_macro2::Span::call_site());
        let declared = [ident("total"), ident("count")];
        let hint = |name| hint(&ident(name), "`Shared`", declared.iter());
        assert_eq!(hint("cuont"), "; did you mean `count`? `Shared` declares `total`, `count`");
        assert_eq!(hint("mean"), "; `Shared` declares `total`, `count`");
        let keys = || ["period", "priority", "Hz", "on_early"].into_iter();
        for (given, meant) in [
            ("periode", Some("period")),
            ("prio", Some("priority")),
            ("hz", Some("Hz")),
            ("on_early_release", Some("on_early")),
            ("rate", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, keys()), meant, "{given}");
        }
    }
}
