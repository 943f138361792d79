//! The mutations of a source: weaker orderings, and dropped statements.
//!
//! Tests, `Debug`, `Display`, code that exists only under loom and code that the compiler evaluates
//! are excluded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Meta, Stmt, Token};

use super::mutation::{Form, Mutation, lines};
use super::outline::Outline;
use crate::Result;

/// Returns the mutations of one file, in source order.
pub(crate) fn mutations(package: &'static str, file: &str, text: &str) -> Result<Vec<Mutation>> {
    let syntax = syn::parse_file(text).map_err(|error| format!("{package}/{file}: {error}"))?;
    let outline = Outline::new(&[], text.len(), &syntax);
    let mut finder = Finder { package, file, text, outline, seen: BTreeSet::new(), found: Vec::new() };
    finder.visit_file(&syntax);
    let mut found = finder.found;
    found.sort_by_key(|mutation| (mutation.range.start, std::cmp::Reverse(mutation.range.end)));
    let mut same: BTreeMap<String, usize> = BTreeMap::new();
    for mutation in &mut found {
        let count = same.entry(mutation.key()).or_default();
        mutation.ordinal = *count;
        *count += 1;
    }
    Ok(found)
}

pub(crate) fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

/// Returns whether an item exists only for tests or models.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let mut conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.any(|attribute| attribute.parse_args().is_ok_and(|condition| implies_tests(&condition)))
}

fn implies_tests(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) => name.is_ident("loom") || name.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            parts.is_ok_and(|parts| parts.iter().any(implies_tests))
        }
        _ => false,
    }
}

struct Finder<'a> {
    package: &'static str,
    file: &'a str,
    text: &'a str,
    outline: Outline,
    /// The start offsets of orderings already visited as arguments of their operation.
    seen: BTreeSet<usize>,
    found: Vec<Mutation>,
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, replacement: &str, form: Form) {
        let Some(function) = self.outline.function_around(&range) else { return };
        self.found.push(Mutation {
            package: self.package,
            file: self.file.to_owned(),
            function: function.to_owned(),
            line: self.text[..range.start].matches('\n').count() + 1,
            original: lines(self.text, &range, None),
            mutated: lines(self.text, &range, Some(replacement)),
            range,
            replacement: replacement.to_owned(),
            form,
            constant: false,
            ordinal: 0,
        });
    }

    fn ordering(&mut self, expr: &Expr, operation: Operation) {
        let Expr::Path(path) = expr else { return };
        let mut segments = path.path.segments.iter().rev();
        let (Some(order), Some(of)) = (segments.next(), segments.next()) else { return };
        if of.ident != "Ordering" || !self.seen.insert(range(expr).start) {
            return;
        }
        let prefix = self.text[range(expr).start..range(&order.ident).start].to_owned();
        for weak in weaker(&order.ident.to_string(), operation) {
            self.add(range(expr), &format!("{prefix}{weak}"), Form::Expression);
        }
    }

    /// Weakens the orderings among the arguments of a call.
    fn call(&mut self, name: &str, arguments: &Punctuated<Expr, Token![,]>) {
        for (at, argument) in arguments.iter().enumerate() {
            self.ordering(argument, Operation::of(name, at, arguments.len()));
        }
    }

    /// Drops a statement that has an effect.
    fn statement(&mut self, statement: &Stmt, is_last: bool) {
        let is_dropped = match statement {
            Stmt::Expr(Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_), Some(_)) => true,
            Stmt::Expr(Expr::Binary(binary), Some(_)) => is_assignment(&binary.op),
            Stmt::Expr(Expr::Return(returned), _) => {
                if let Some(effect) = returned.expr.as_deref().filter(|expr| is_effect(expr)) {
                    self.add(range(effect), "()", Form::Expression);
                }
                true
            }
            Stmt::Expr(effect, None) if is_last && is_effect(effect) => {
                self.add(range(effect), "()", Form::Expression);
                false
            }
            _ => false,
        };
        if is_dropped {
            self.add(range(statement), "", Form::Statement);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_none_or(|of| of.ident != "Debug" && of.ident != "Display") {
            visit::visit_item_impl(self, item);
        }
    }

    // The compiler evaluates these.
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if is_for_tests(&local.attrs) {
            return;
        }
        let Some(init) = &local.init else { return };
        self.visit_expr(&init.expr);
        match init.diverge.as_ref().map(|(_, otherwise)| &**otherwise) {
            // Its last statement cannot be dropped.
            Some(Expr::Block(block)) => {
                for statement in block.block.stmts.iter().rev().skip(1) {
                    self.statement(statement, false);
                }
                block.block.stmts.iter().for_each(|statement| self.visit_stmt(statement));
            }
            Some(other) => self.visit_expr(other),
            None => {}
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for (at, statement) in block.stmts.iter().enumerate() {
            self.statement(statement, at + 1 == block.stmts.len());
        }
        visit::visit_block(self, block);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        // `#[cfg(loom)]` on a statement is an attribute of its expression.
        let attributes = match statement {
            Stmt::Expr(Expr::Call(call), _) => &call.attrs,
            Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            Stmt::Expr(Expr::If(branch), _) => &branch.attrs,
            _ => return visit::visit_stmt(self, statement),
        };
        if !is_for_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.call(&call.method.to_string(), &call.args);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        self.call(&called(&call.func).unwrap_or_default(), &call.args);
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.ordering(&Expr::Path(path.clone()), Operation::Unknown);
    }
}

fn is_assignment(op: &BinOp) -> bool {
    use BinOp::{AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, ShlAssign, ShrAssign, SubAssign};
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Returns the name of the called function.
fn called(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// Returns whether an expression that yields a block's value is there for its effect.
fn is_effect(expr: &Expr) -> bool {
    let name = match expr {
        Expr::MethodCall(call) => Some(call.method.to_string()),
        Expr::Call(call) => called(&call.func),
        _ => None,
    };
    let effects = ["wake", "notify", "fence", "store", "signal", "unlock", "release", "set_"];
    name.is_some_and(|name| effects.iter().any(|prefix| name.starts_with(prefix)))
}

/// The operation of an ordering, which decides which orderings are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Load,
    Store,
    ReadModifyWrite,
    Fence,
    /// A variable, or a function of the package.
    Unknown,
}

impl Operation {
    /// Returns the operation for the argument at this position of `count`, by the name of the
    /// called function.
    fn of(name: &str, at: usize, count: usize) -> Self {
        match name {
            "load" => Self::Load,
            "store" => Self::Store,
            "fence" => Self::Fence,
            "fetch_update" if at == 1 => Self::Load,
            // The ordering of the failure follows that of the success.
            "compare_exchange" | "compare_exchange_weak" if at + 1 == count => Self::Load,
            "swap" | "compare_exchange" | "compare_exchange_weak" => Self::ReadModifyWrite,
            name if name.starts_with("fetch_") => Self::ReadModifyWrite,
            _ => Self::Unknown,
        }
    }
}

/// Returns the orderings one step below `order`. A fence that orders nothing is not a fence: it is
/// dropped as a statement instead.
fn weaker(order: &str, operation: Operation) -> &'static [&'static str] {
    use Operation::{Fence, Load, ReadModifyWrite, Store, Unknown};
    match (order, operation) {
        ("SeqCst", Load) => &["Acquire"],
        ("SeqCst", Store) => &["Release"],
        ("SeqCst", ReadModifyWrite | Fence | Unknown) => &["AcqRel"],
        ("AcqRel", _) => &["Acquire", "Release"],
        ("Acquire" | "Release", Fence) => &[],
        ("Acquire" | "Release", _) => &["Relaxed"],
        _ => &[],
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
            assert_eq!((mutation.function.as_str(), mutation.line), ("Lock::f", 3));
            let mutated = mutation.apply(&text);
            assert!(syn::parse_file(&mutated).is_ok(), "{mutated}");
            assert_ne!(mutated, text);
        }
        found.into_iter().map(|mutation| mutation.mutated).collect()
    }

    #[test]
    fn weakens_each_ordering_as_operation_allows() {
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
        assert!(of("a.level()").is_empty(), "it returns a value");
    }

    #[test]
    fn drops_returns_except_at_end_of_diverging_block() {
        assert_eq!(of("if let Some(a) = b { return true; } false"), ["if let Some(a) = b { } false"]);
        assert_eq!(
            of("if let Some(a) = b { return wake(a); }"),
            ["if let Some(a) = b { }", "if let Some(a) = b { return (); }"]
        );
        assert!(of("let Some(a) = b else { return c };").is_empty());
    }

    #[test]
    fn excludes_tests_models_formatting_and_constants() {
        let text = "#[cfg(test)] mod tests { fn f() { wake(); } }\n\
                    #[cfg(all(test, not(loom)))] fn t() { wake(); }\n\
                    #[cfg(loom)] fn g() { wake(); }\n\
                    impl Debug for X { fn fmt(&self) { wake(); } }\n\
                    const fn h() { wake(); }\nconst C: u8 = { wake(); 1 };";
        assert!(mutations("p", "src/x.rs", text).unwrap().is_empty());
    }

    #[test]
    fn numbers_equal_lines_of_function() {
        let text = "fn f() {\n    g();\n    g();\n}";
        let found = mutations("p", "src/x.rs", text).unwrap();
        assert_eq!(found.iter().map(|m| (m.line, m.ordinal)).collect::<Vec<_>>(), [(2, 0), (3, 1)]);
    }
}
