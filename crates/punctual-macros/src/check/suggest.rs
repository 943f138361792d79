//! Suggestions for names of resources and tasks that are not declared, or declared twice.

use syn::Ident;

/// "; did you mean `x`?" if there is a near name, and the names that `place` declares.
pub(super) fn hint<'a>(name: &Ident, place: &str, declared: impl Iterator<Item = &'a Ident>) -> String {
    let declared: Vec<String> = declared.map(Ident::to_string).collect();
    let name = name.to_string();
    let near = declared.iter().map(|other| (distance(&name, other), other)).min();
    let meant = match near {
        // A name of one or two letters is within two edits of everything short.
        Some((edits, other)) if edits <= 2 && edits < name.chars().count() => {
            format!("; did you mean `{other}`?")
        }
        _ => String::new(),
    };
    if declared.is_empty() {
        return format!("{meant}; {place} declares none");
    }
    let list = declared.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let stop = if meant.is_empty() { ";" } else { "" };
    format!("{meant}{stop} {place} declares {list}")
}

/// The answer to a second field of one name.
pub(super) fn declared_twice(kind: &str, name: &Ident) -> String {
    format!(
        "the {kind} resource `{name}` is declared twice; rename one, or give both `#[cfg]`s that exclude each other"
    )
}

/// The answer to a name that a condition leaves out.
pub(super) fn left_out(name: &Ident) -> String {
    format!("a `#[cfg]` leaves `{name}` out of this build; give this entry the same one")
}

/// The Levenshtein distance: how many letters to insert, delete or replace to turn `a` into `b`.
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
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let ident = |name| Ident::new(name, proc_macro2::Span::call_site());
        let declared = [ident("total"), ident("count")];
        let hint = |name| hint(&ident(name), "`Shared`", declared.iter());
        assert_eq!(hint("cuont"), "; did you mean `count`? `Shared` declares `total`, `count`");
        assert_eq!(hint("mean"), "; `Shared` declares `total`, `count`");
    }
}
