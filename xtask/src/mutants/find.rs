//! What can be mutated in a source.
//!
//! Tests, `Debug` and `Display`, and what exists under loom only are left out: they are not the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Lit, Meta, Stmt, Token, UnOp};

use super::mutation::{Form, Mutation, lines};
use super::orderings::{Operation, weaker};
use crate::Result;

/// The mutations of one file, in the order of the source.
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
    /// The modules, types and functions around.
    scope: Vec<String>,
    constant: bool,
    /// Where orderings begin that have been seen as arguments of their operation.
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

    /// Visits what is evaluated at compile time.
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

    fn ordering(&mut self, expr: &Expr, operation: Operation) {
        let Expr::Path(path) = expr else { return };
        let mut segments = path.path.segments.iter().rev();
        let (Some(order), Some(of)) = (segments.next(), segments.next()) else { return };
        if of.ident != "Ordering" || !self.seen.insert(range(expr).start) {
            return;
        }
        let at = range(&order.ident);
        for weak in weaker(&order.ident.to_string(), operation) {
            let whole = range(expr);
            let replacement = format!("{}{weak}", &self.text[whole.start..at.start]);
            self.replace(whole, replacement);
        }
    }

    /// A constant that something is compared with, counted with or found by, one more and one less.
    fn constant(&mut self, expr: &Expr, more: bool, less: bool) {
        let at = range(expr);
        match expr {
            Expr::Lit(literal) => {
                let Lit::Int(number) = &literal.lit else { return };
                let Ok(value) = number.base10_parse::<u128>() else { return };
                if more {
                    self.replace(at.clone(), format!("{}{}", value + 1, number.suffix()));
                }
                if less && value > 0 {
                    self.replace(at, format!("{}{}", value - 1, number.suffix()));
                }
            }
            Expr::Path(path) => {
                let Some(last) = path.path.segments.last() else { return };
                let name = last.ident.to_string();
                let is_constant = name.len() > 1 && !name.contains(|c: char| c.is_ascii_lowercase());
                if is_constant && more {
                    self.replace(at.clone(), format!("({} + 1)", self.text_of(expr)));
                }
                if is_constant && less {
                    self.replace(at, format!("({} - 1)", self.text_of(expr)));
                }
            }
            _ => {}
        }
    }

    fn negate(&mut self, condition: &Expr) {
        match condition {
            // The comparison itself becomes its opposite.
            Expr::Binary(binary) if matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_)) => {}
            Expr::Binary(binary) if has_let(condition) => {
                self.negate(&binary.left);
                self.negate(&binary.right);
            }
            Expr::Let(_) | Expr::Lit(_) => {}
            Expr::Paren(inner) => self.negate(&inner.expr),
            Expr::Unary(not) if matches!(not.op, UnOp::Not(_)) => {
                let inner = self.text_of(&*not.expr).to_owned();
                self.replace(range(condition), inner);
            }
            _ => {
                let negated = format!("!({})", self.text_of(condition));
                self.replace(range(condition), negated);
            }
        }
    }

    /// What a block does for its effect.
    fn statement(&mut self, statement: &Stmt, is_last: bool) {
        let dropped = match statement {
            Stmt::Expr(Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_), Some(_)) => true,
            Stmt::Expr(Expr::Binary(binary), Some(_)) => is_assignment(&binary.op),
            Stmt::Expr(Expr::Return(returned), _) => {
                if let Some(effect) = returned.expr.as_deref().filter(|expr| is_effect(expr)) {
                    self.replace(range(effect), "()");
                }
                true
            }
            Stmt::Expr(effect, None) if is_last && is_effect(effect) => {
                self.replace(range(effect), "()");
                false
            }
            _ => false,
        };
        if dropped {
            self.add(range(statement), String::new(), Form::Statement);
        }
    }

    fn function(
        &mut self,
        attributes: &[Attribute],
        signature: &syn::Signature,
        visit: impl FnOnce(&mut Self),
    ) {
        if !is_for_tests(attributes) {
            let constant = signature.constness.is_some();
            self.within(signature.ident.to_string(), |me| me.in_constant(constant, visit));
        }
    }

    /// What is written in a macro, where it is the protocol's.
    fn in_macro(&mut self, of: &syn::Macro) {
        let Some(name) = of.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        match name.as_str() {
            // A constructor that is `const` except under loom.
            "const_new" => {
                if let Ok(function) = of.parse_body::<syn::ImplItemFn>() {
                    self.in_constant(true, |me| me.visit_impl_item_fn(&function));
                }
            }
            "assert" => {
                let arguments = of.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
                if let Some(condition) = arguments.ok().as_ref().and_then(|all| all.first()) {
                    self.visit_expr(condition);
                }
            }
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            _ => return,
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|of| of.ident == "Debug" || of.ident == "Display") {
            return;
        }
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        self.within(name.unwrap_or_else(|| "_".to_owned()), |me| visit::visit_item_impl(me, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, |me| me.visit_block(&item.block));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, |me| me.visit_block(&item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, |me| me.visit_block(block));
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.within(item.ident.to_string(), |me| {
            me.in_constant(true, |me| me.visit_expr(&item.expr));
        });
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.within(item.ident.to_string(), |me| {
            me.in_constant(true, |me| me.visit_expr(&item.expr));
        });
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(item.ident.to_string(), |me| me.in_constant(true, |me| me.visit_expr(&item.expr)));
    }

    // Types hold constants, but none of the protocol.
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.in_macro(item);
    }

    fn visit_expr_const(&mut self, expr: &'ast syn::ExprConst) {
        self.in_constant(true, |me| visit::visit_expr_const(me, expr));
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
        self.in_constant(true, |me| me.visit_expr(&expr.len));
    }

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
            // What it ends with cannot be dropped.
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
            Stmt::Macro(of) => &of.attrs,
            _ => return visit::visit_stmt(self, statement),
        };
        if !is_for_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.negate(&expr.cond);
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.negate(&expr.cond);
        visit::visit_expr_while(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.negate(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        for (at, argument) in call.args.iter().enumerate() {
            self.ordering(argument, Operation::of(&name, at, call.args.len()));
        }
        if let ("max" | "min", [other]) = (name.as_str(), Vec::from_iter(&call.args).as_slice()) {
            let whole = range(call);
            let (receiver, other) =
                (self.text_of(&*call.receiver).to_owned(), self.text_of(*other).to_owned());
            let opposite = if name == "max" { "min" } else { "max" };
            let swapped = format!("{receiver}.{opposite}({other})");
            for replacement in [swapped, receiver, other] {
                self.replace(whole.clone(), replacement);
            }
        }
        let counts = [
            "wrapping_",
            "checked_",
            "saturating_",
            "overflowing_",
            "fetch_add",
            "fetch_sub",
            "nth",
            "rotate_",
        ];
        if counts.iter().any(|prefix| name.starts_with(prefix))
            && let Some(first) = call.args.first()
        {
            self.constant(first, true, false);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let name = called(&call.func).unwrap_or_default();
        for (at, argument) in call.args.iter().enumerate() {
            self.ordering(argument, Operation::of(&name, at, call.args.len()));
        }
        if let ("max" | "min", [a, b]) = (name.as_str(), Vec::from_iter(&call.args).as_slice()) {
            for replacement in [self.text_of(*a).to_owned(), self.text_of(*b).to_owned()] {
                self.replace(range(call), replacement);
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.ordering(&Expr::Path(path.clone()), Operation::Unknown);
    }

    fn visit_expr_index(&mut self, expr: &'ast syn::ExprIndex) {
        self.constant(&expr.index, true, true);
        visit::visit_expr_index(self, expr);
    }

    fn visit_expr_range(&mut self, expr: &'ast syn::ExprRange) {
        for bound in [&expr.start, &expr.end].into_iter().flatten() {
            self.constant(bound, true, true);
        }
        visit::visit_expr_range(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let other = match expr.op {
            BinOp::Lt(_) => Some(("<", "<=")),
            BinOp::Le(_) => Some(("<=", "<")),
            BinOp::Gt(_) => Some((">", ">=")),
            BinOp::Ge(_) => Some((">=", ">")),
            BinOp::Eq(_) => Some(("==", "!=")),
            BinOp::Ne(_) => Some(("!=", "==")),
            BinOp::And(_) => Some(("&&", "||")),
            BinOp::Or(_) => Some(("||", "&&")),
            _ => None,
        };
        let whole = range(expr);
        if let Some((from, to)) = other
            && !has_let(&expr.left)
            && !has_let(&expr.right)
        {
            let at = range(&expr.op).start;
            let (left, right) = (&self.text[whole.start..at], &self.text[at + from.len()..whole.end]);
            // The other operator may bind less tightly than what stands around.
            self.replace(whole, format!("({left}{to}{right})"));
        }
        // Where the comparison that is shifted says the same as the constant that is, there is only the former.
        let (more, less) = match expr.op {
            BinOp::Lt(_) | BinOp::Ge(_) => (false, true),
            BinOp::Le(_) | BinOp::Gt(_) => (true, false),
            BinOp::Shl(_) | BinOp::Shr(_) => (true, true),
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_) => (true, true),
            _ => (false, false),
        };
        self.constant(&expr.right, more, less);
        let (more, less) = match expr.op {
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => (less, more),
            _ => (more, less),
        };
        self.constant(&expr.left, more, less);
        visit::visit_expr_binary(self, expr);
    }
}

fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

/// Whether something is there for tests or models only.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
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

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
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

/// The name of the function that is called.
fn called(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// Whether an expression that gives a block's value is there for what it does.
fn is_effect(expr: &Expr) -> bool {
    let name = match expr {
        Expr::MethodCall(call) => Some(call.method.to_string()),
        Expr::Call(call) => called(&call.func),
        _ => None,
    };
    let effects = ["wake", "notify", "fence", "store", "signal", "unlock", "release", "set_"];
    name.is_some_and(|name| effects.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the body of a function can become, each with the lines that changed.
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
