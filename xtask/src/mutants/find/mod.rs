//! The mutations of a source.
//!
//! Tests, `Debug`, `Display` and code that exists only under loom are excluded: they are not part
//! of the protocol.

mod rules;
mod syntax;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::Visit;

use super::mutation::{Form, Mutation, lines};
use crate::Result;
pub(crate) use syntax::{is_for_tests, range};

/// Returns the mutations of one file, in source order.
pub(crate) fn mutations(package: &'static str, file: &str, text: &str) -> Result<Vec<Mutation>> {
    let syntax = syn::parse_file(text).map_err(|error| format!("{package}/{file}: {error}"))?;
    let mut finder = Finder {
        package,
        file,
        text,
        scope: Vec::new(),
        constant: false,
        seen: BTreeSet::new(),
        found: Vec::new(),
    };
    finder.visit_file(&syntax);
    let mut found = finder.found;
    found.sort_by_key(|mutation| (mutation.range.start, std::cmp::Reverse(mutation.range.end)));
    found.dedup_by(|a, b| a.range == b.range && a.replacement == b.replacement);
    let mut same: BTreeMap<String, usize> = BTreeMap::new();
    for mutation in &mut found {
        let count = same.entry(mutation.key()).or_default();
        mutation.ordinal = *count;
        *count += 1;
    }
    Ok(found)
}

struct Finder<'a> {
    package: &'static str,
    file: &'a str,
    text: &'a str,
    /// The enclosing modules, types and functions.
    scope: Vec<String>,
    constant: bool,
    /// The start offsets of orderings already visited as arguments of their operation.
    seen: BTreeSet<usize>,
    found: Vec<Mutation>,
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, replacement: String, form: Form) {
        let piece = &self.text[range.clone()];
        if piece == replacement {
            return;
        }
        self.found.push(Mutation {
            package: self.package,
            file: self.file.to_owned(),
            function: self.scope.join("::"),
            line: self.text[..range.start].lines().count().max(1)
                + usize::from(self.text[..range.start].ends_with('\n')),
            original: lines(self.text, &range, None),
            mutated: lines(self.text, &range, Some(&replacement)),
            range,
            replacement,
            form,
            constant: self.constant,
            ordinal: 0,
        });
    }

    fn replace(&mut self, range: Range<usize>, replacement: impl Into<String>) {
        self.add(range, replacement.into(), Form::Expression);
    }

    fn text_of(&self, node: &impl Spanned) -> &str {
        &self.text[range(node)]
    }

    /// Visits code that is evaluated at compile time.
    fn in_constant(&mut self, constant: bool, visit: impl FnOnce(&mut Self)) {
        let before = self.constant;
        self.constant |= constant;
        visit(self);
        self.constant = before;
    }

    fn within(&mut self, name: impl Into<String>, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name.into());
        visit(self);
        self.scope.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mutations of the body of a function, each with the changed lines.
    fn of(body: &str) -> Vec<String> {
        let text = format!("impl Lock {{\nfn f(&self) -> bool {{\n{body}\n}}\n}}\n");
        let found = mutations("punctual-core", "src/x.rs", &text).unwrap();
        for mutation in &found {
            assert_eq!(mutation.function, "Lock::f");
            let mutated = mutation.apply(&text);
            assert!(syn::parse_file(&mutated).is_ok(), "{mutated}");
            assert!(text.contains(text.lines().nth(mutation.line - 1).unwrap()));
            assert_ne!(mutated, text);
        }
        found.into_iter().map(|mutation| mutation.mutated).collect()
    }

    #[test]
    fn weakens_each_ordering_as_its_operation_allows() {
        assert_eq!(of("a.load(Ordering::SeqCst)"), ["a.load(Ordering::Acquire)"]);
        assert_eq!(
            of("let _ = a.swap(b, Ordering::AcqRel);"),
            ["let _ = a.swap(b, Ordering::Acquire);", "let _ = a.swap(b, Ordering::Release);"]
        );
        assert_eq!(
            of("let _ = a.compare_exchange(b, c, Ordering::SeqCst, Ordering::Acquire);"),
            [
                "let _ = a.compare_exchange(b, c, Ordering::AcqRel, Ordering::Acquire);",
                "let _ = a.compare_exchange(b, c, Ordering::SeqCst, Ordering::Relaxed);"
            ]
        );
        assert_eq!(of("lock(word, Ordering::Release)"), ["lock(word, Ordering::Relaxed)"]);
        assert!(of("a.load(Ordering::Relaxed)").is_empty());
    }

    #[test]
    fn drops_fences_wakes_stores_and_assignments() {
        assert_eq!(of("fence(Ordering::SeqCst);"), ["", "fence(Ordering::AcqRel);"]);
        assert_eq!(of("fence(Ordering::Acquire);"), [""], "a relaxed fence is none");
        assert_eq!(of("a.store(b, Ordering::Relaxed);"), [""]);
        assert_eq!(of("*a = b;"), [""]);
        assert_eq!(of("*a += b;"), [""]);
        assert_eq!(of("self.port.wake(b)"), ["()"]);
        assert!(of("a.level()").is_empty(), "it gives a value");
    }

    #[test]
    fn shifts_comparisons_and_what_is_compared() {
        assert_eq!(of("a < b"), ["(a <= b)"]);
        assert_eq!(of("a >= MOST"), ["(a > MOST)", "a >= (MOST - 1)"]);
        assert_eq!(of("a == 0"), ["(a != 0)"]);
        assert_eq!(of("a[i + 1]"), ["a[i + 2]", "a[i + 0]"]);
        assert_eq!(
            of("for _ in 0..LAST {}"),
            ["for _ in 1..LAST {}", "for _ in 0..(LAST + 1) {}", "for _ in 0..(LAST - 1) {}"]
        );
        assert_eq!(of("a.fetch_add(1, Ordering::Relaxed)"), ["a.fetch_add(2, Ordering::Relaxed)"]);
    }

    #[test]
    fn negates_conditions_and_exchanges_what_joins_them() {
        assert_eq!(of("if a.b() {}"), ["if !(a.b()) {}"]);
        assert_eq!(of("while !a {}"), ["while a {}"]);
        assert_eq!(of("a && b"), ["(a || b)"]);
        assert_eq!(of("if let Some(a) = b && c {}"), ["if let Some(a) = b && !(c) {}"]);
        assert_eq!(of("match a { _ if b => 1, _ => 2 }"), ["match a { _ if !(b) => 1, _ => 2 }"]);
    }

    #[test]
    fn drops_and_exchanges_max_and_min() {
        assert_eq!(of("a.max(b)"), ["a.min(b)", "a", "b"]);
        assert_eq!(of("core::cmp::min(a, b)"), ["a", "b"]);
    }

    #[test]
    fn drops_returns_but_not_what_a_branch_has_to_end_with() {
        assert_eq!(of("if let Some(a) = b { return true; }\nfalse"), ["if let Some(a) = b { }"]);
        assert_eq!(
            of("if let Some(a) = b { return wake(a); }"),
            ["if let Some(a) = b { }", "if let Some(a) = b { return (); }"]
        );
        assert!(of("let Some(a) = b else { return c };").is_empty());
    }

    #[test]
    fn leaves_tests_models_and_formatting_alone() {
        let text = "#[cfg(test)] mod tests { fn f(a: u8) -> bool { a < 2 } }\n\
                    #[cfg(all(test, not(loom)))] fn t(a: u8) -> bool { a < 2 }\n\
                    #[cfg(loom)] fn g(a: u8) -> bool { a < 2 }\n\
                    impl Debug for X { fn fmt(&self) -> bool { self.0 < 2 } }\n\
                    fn h(a: u8) { debug_assert!(a < 2); }";
        assert!(mutations("p", "src/x.rs", text).unwrap().is_empty());
    }

    #[test]
    fn reads_constructors_and_tells_what_is_constant() {
        let text = "impl X { const_new! { pub fn new(a: u8) -> Self { assert!(a < 3, \"too many\"); X(a) } } }\n\
                    const fn f(a: u8) -> bool { a > 7 }\nfn g(a: u8) -> bool { a > 7 }\nconst C: u8 = 1 << D;";
        let found = mutations("p", "src/x.rs", text).unwrap();
        let of = |function: &str| {
            found.iter().filter(|m| m.function == function).map(|m| m.constant).collect::<Vec<_>>()
        };
        assert_eq!(of("X::new"), [true, true]);
        assert_eq!(of("f"), [true, true]);
        assert_eq!(of("g"), [false, false]);
        assert!(!of("C").is_empty() && of("C").iter().all(|constant| *constant));
    }

    #[test]
    fn tells_equal_lines_of_a_function_apart() {
        let text = "fn f() {\n    g();\n    g();\n}";
        let found = mutations("p", "src/x.rs", text).unwrap();
        assert_eq!(found.iter().map(|m| (m.line, m.ordinal)).collect::<Vec<_>>(), [(2, 0), (3, 1)]);
    }
}
