//! Suggestions for names that do not exist, or exist twice.

use syn::Ident;

/// Returns "; did you mean `x`?" if there is a similar name, and the names that `place` declares.
pub(crate) fn hint<'a>(name: &Ident, place: &str, declared: impl Iterator<Item = &'a Ident>) -> String {
    let declared: Vec<String> = declared.map(Ident::to_string).collect();
    let name = name.to_string();
    let meant = meant(&name, declared.iter().map(String::as_str));
    if declared.is_empty() {
        return format!("{meant}; {place} declares none");
    }
    let list = list(declared.iter().map(String::as_str));
    let stop = if meant.is_empty() { ";" } else { "" };
    format!("{meant}{stop} {place} declares {list}")
}

/// Returns "; did you mean `x`?" if there is a similar name, and an empty text otherwise.
pub(crate) fn meant<'a>(name: &str, declared: impl Iterator<Item = &'a str>) -> String {
    nearest(name, declared).map_or_else(String::new, |other| format!("; did you mean `{other}`?"))
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

/// Returns the number of insertions, deletions, replacements and exchanges of neighbors that turn
/// `a` into `b` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| name.chars().collect::<Vec<_>>());
    // The distances of the beginnings of `a` and `b` with these lengths.
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let exchanged = if exchanged { table[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(exchanged).min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("count", "count"), 0);
        assert_eq!(distance("cuont", "count"), 1);
        assert_eq!(distance("oi", "io"), 1);
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
            ("zH", Some("Hz")),
        ] {
            assert_eq!(nearest(given, keys()), meant, "{given}");
        }
    }
}
