//! Common mistakes in the bodies of handlers that the compiler reports poorly.
//!
//! A rejected body must be wrong. So a variable that is bound again anywhere in a body is not
//! followed, and a body with conditions is not checked.

mod context;
mod flow;

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    BinOp, Expr, ExprAsync, ExprAwait, ExprCall, ExprClosure, ExprField, ExprMethodCall, ExprTryBlock,
    ExprUnary, FnArg, Ident, Item, Macro, Member, Pat, PatIdent, PatStruct, Type, UnOp,
};

use super::section;
use crate::analyze::{Analysis, LockKind};
use crate::errors::{Errors, Warnings};
use crate::model::{App, Handler, HandlerItem, IDLE_LEVEL, Role, SharedUse};
use crate::parse::{is_unit, last_two, ungrouped};

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors, warnings: &mut Warnings) {
    for handler in app.handlers() {
        let HandlerItem::Defined(item) = &handler.item else { continue };
        let Some(FnArg::Typed(parameter)) = item.sig.inputs.first() else { continue };
        if is_conditional(item.block.to_token_stream()) {
            continue;
        }
        let mut bound = Bound::default();
        bound.visit_block(&item.block);
        let context = match &*parameter.pat {
            Pat::Ident(pat) if !bound.0.contains(&pat.ident) => Some(&pat.ident),
            _ => None,
        };
        let (can_wait, locked) = (item.sig.asyncness.is_some(), Vec::new());
        let mut body =
            Body { app, analysis, handler, context, can_wait, runs_in_job: true, locked, errors, warnings };
        body.visit_pat(&parameter.pat);
        body.visit_block(&item.block);
    }
}

/// Returns whether a `#[cfg]` may remove a part of the code.
fn is_conditional(code: TokenStream) -> bool {
    let mut hash = false;
    code.into_iter().any(|token| {
        let TokenTree::Group(group) = &token else {
            hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
            return false;
        };
        let first = group.stream().into_iter().next();
        let is_condition =
            matches!(first, Some(TokenTree::Ident(name)) if name == "cfg" || name == "cfg_attr");
        std::mem::take(&mut hash) && is_condition || is_conditional(group.stream())
    })
}

/// Names bound by patterns.
#[derive(Default)]
struct Bound(HashSet<Ident>);

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.0.insert(pat.ident.clone());
        visit::visit_pat_ident(self, pat);
    }
}

/// Returns the names that patterns in an expression bind.
pub(super) fn bound_names(expr: &Expr) -> HashSet<Ident> {
    let mut bound = Bound::default();
    bound.visit_expr(expr);
    bound.0
}

/// Frequent methods of the standard library's values and collections; a lock right has none of
/// them.
const METHODS_OF_VALUES: [&str; 24] = [
    "abs",
    "as_bytes",
    "as_mut",
    "as_ref",
    "as_str",
    "clear",
    "clone",
    "contains",
    "extend",
    "first",
    "get",
    "get_mut",
    "insert",
    "is_empty",
    "is_none",
    "is_some",
    "iter",
    "iter_mut",
    "last",
    "len",
    "pop",
    "push",
    "remove",
    "to_string",
];

/// Returns whether a type is a number, a character or a Boolean, which has no method `lock`.
fn is_primitive(ty: &Type) -> bool {
    const NAMES: [&str; 16] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
        "u128", "usize",
    ];
    let Type::Path(path) = ty else { return false };
    path.path.get_ident().is_some_and(|ident| NAMES.iter().any(|name| ident == name))
}

fn is_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

struct Body<'a> {
    app: &'a App,
    analysis: &'a Analysis,
    handler: &'a Handler,
    /// The variable with the context.
    context: Option<&'a Ident>,
    /// True if `.await` is allowed here.
    can_wait: bool,
    /// True in code that certainly runs in a job of the handler: the body, without closures and
    /// async blocks, and critical sections.
    runs_in_job: bool,
    /// The resources of the enclosing critical sections.
    locked: Vec<Ident>,
    errors: &'a mut Errors,
    warnings: &'a mut Warnings,
}

impl<'ast> Visit<'ast> for Body<'_> {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => {
                self.value(&binary.left);
                self.value(&binary.right);
                if is_assignment(&binary.op) {
                    self.writes(&binary.left);
                }
            }
            Expr::Assign(assign) => {
                self.value(&assign.left);
                self.writes(&assign.left);
            }
            Expr::Try(expr) if self.runs_in_job => self.passes_error_on(expr),
            Expr::Index(index) => {
                self.value(&index.expr);
            }
            Expr::Field(outer) => {
                self.value(&outer.base);
            }
            Expr::Cast(cast) => {
                self.value(&cast.expr);
            }
            Expr::ForLoop(repeated) => {
                self.value(&repeated.expr);
            }
            Expr::If(branch) => {
                self.value(&branch.cond);
            }
            Expr::While(repeated) => {
                self.value(&repeated.cond);
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast ExprUnary) {
        if !self.value(&expr.expr) {
            visit::visit_expr_unary(self, expr);
        }
    }

    fn visit_expr_field(&mut self, expr: &'ast ExprField) {
        if !self.field(expr) {
            visit::visit_expr_field(self, expr);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if METHODS_OF_VALUES.iter().any(|method| call.method == method) {
            self.value(&call.receiver);
        } else if call.method == "lock" {
            self.needs_no_lock(&call.receiver);
        }
        let resource = self.resource(&call.receiver).filter(|_| call.method == "lock").cloned();
        let Some(resource) = resource else { return visit::visit_expr_method_call(self, call) };
        if self.locked.contains(&resource) {
            self.errors.at(
                &call.receiver,
                format_args!("`{resource}` is already locked here; use the closure's argument"),
            );
        }
        self.visit_expr(&call.receiver);
        self.locked.push(resource);
        for arg in &call.args {
            match arg {
                Expr::Closure(section) => self.section(section),
                _ => self.visit_expr(arg),
            }
        }
        self.locked.pop();
    }

    fn visit_pat_struct(&mut self, pattern: &'ast PatStruct) {
        self.parts_in(pattern);
        visit::visit_pat_struct(self, pattern);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.within(closure.asyncness.is_some(), false, |body| visit::visit_expr_closure(body, closure));
    }

    fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
        self.within(true, false, |body| visit::visit_expr_async(body, block));
    }

    fn visit_expr_try_block(&mut self, block: &'ast ExprTryBlock) {
        self.within(self.can_wait, false, |body| visit::visit_expr_try_block(body, block));
    }

    fn visit_expr_await(&mut self, expr: &'ast ExprAwait) {
        if !self.can_wait {
            self.waits(expr);
        }
        visit::visit_expr_await(self, expr);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let mut names = path.path.segments.iter().map(|segment| &segment.ident);
            if let (Some(module), Some(function), None) = (names.next(), names.next(), names.next())
                && *module == self.app.module.ident
                && function == "run"
            {
                self.errors.at(
                    &call.func,
                    "`run` starts the app, and a handler runs while the app does; call it in `main`, outside the module",
                );
            }
        }
        self.sleeps(call);
        self.takes_duration(call);
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        let args = mac.parse_body_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated);
        match args {
            // The macro may put them into a closure.
            Ok(args) => self.within(self.can_wait, false, |body| {
                for arg in &args {
                    body.value(arg);
                    body.visit_expr(arg);
                }
            }),
            Err(_) => self.tokens(mac.tokens.clone()),
        }
    }

    // Functions and closures in an item have no access to the context.
    fn visit_item(&mut self, _: &'ast Item) {}
}

impl Body<'_> {
    /// Visits code in which `.await` may be allowed, and which may run in a job.
    fn within(&mut self, can_wait: bool, runs_in_job: bool, visit: impl FnOnce(&mut Self)) {
        let before = (self.can_wait, self.runs_in_job);
        (self.can_wait, self.runs_in_job) = (can_wait, runs_in_job);
        visit(self);
        (self.can_wait, self.runs_in_job) = before;
    }

    /// Visits the critical section of the resource that was locked last, and reports references to
    /// the resource that leave it.
    fn section(&mut self, closure: &ExprClosure) {
        let Some(resource) = self.locked.last() else { return };
        let ty = self.app.resource(resource).map(|resource| &resource.ty);
        if let Some(keyword) = &closure.asyncness {
            self.errors.at(
                keyword,
                format_args!(
                    "a critical section cannot wait; remove `async`, and `.await` after `{resource}.lock(..)`"
                ),
            );
            return;
        }
        for section::Escape { place, remedy } in section::escapes(closure, ty) {
            self.errors.at(
                place,
                format_args!(
                    "a reference to `{resource}` is valid only in its critical section; use it there, or {remedy}"
                ),
            );
        }
        self.within(false, self.runs_in_job, |body| visit::visit_expr_closure(body, closure));
    }

    /// Reports a duration in place of a point in time.
    fn takes_duration(&mut self, call: &ExprCall) {
        let (Expr::Path(function), Some(Expr::MethodCall(time))) = (&*call.func, call.args.first()) else {
            return;
        };
        let Some((module, function)) = last_two(&function.path) else { return };
        let (module, function) = (&module.ident, &function.ident);
        if !matches!(ungrouped(&time.receiver), Expr::Lit(_)) || !is_unit(&time.method) {
            return;
        }
        let given = format!("{}.{}()", time.receiver.to_token_stream(), time.method);
        let instead = if function == "spawn_at" && self.app.task_named(module).is_some() {
            format!("{module}::spawn_after({given}, ..)")
        } else if function == "delay_until" && module == "punctual" {
            format!("punctual::delay({given})")
        } else {
            return;
        };
        self.errors.at(
            time,
            format_args!(
                "`{function}` takes a point in time; write `{instead}`, or `punctual::now() + {given}`"
            ),
        );
    }

    /// Reports a write to a resource that the handler lists by reference.
    fn writes(&mut self, target: &Expr) {
        let base = match ungrouped(target) {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => &unary.expr,
            Expr::Index(index) => &index.expr,
            Expr::Field(field) => &field.base,
            _ => return,
        };
        let Some((name, false)) = self.shared(ungrouped(base)) else { return };
        let by_reference = |used: &SharedUse| used.ident == *name && used.access.is_reference();
        if self.handler.shared.iter().any(by_reference) {
            let context = self.context.map(Ident::to_string).unwrap_or_default();
            self.errors.at(
                target,
                format_args!(
                    "`{name}` is read-only here, because it is listed as `&{name}`; list `{name}` without `&` everywhere, \
                     and write `{context}.shared.{name}.lock(|{name}| ..)`"
                ),
            );
        }
    }

    /// Returns the part of the context that `expr` is: `shared` or `local`.
    fn part<'e>(&self, expr: &'e Expr) -> Option<&'e Ident> {
        let Expr::Field(field) = expr else { return None };
        let (Expr::Path(path), Member::Named(part)) = (&*field.base, &field.member) else { return None };
        (path.path.get_ident() == self.context && self.context.is_some()).then_some(part)
    }

    /// Returns the shared resource that `expr` is, and whether the handler has a lock right.
    fn shared<'e>(&self, expr: &'e Expr) -> Option<(&'e Ident, bool)> {
        let Expr::Field(field) = expr else { return None };
        let Member::Named(name) = &field.member else { return None };
        let used = self.handler.shared.iter().find(|used| used.ident == *name)?;
        let level = self.app.task(self.handler).map_or(IDLE_LEVEL, |task| task.priority);
        let kind = self.analysis.lock_kind(self.app, level, used);
        let locks =
            !matches!(kind, LockKind::Reference | LockKind::Direct) && self.handler.role != Role::Shutdown;
        (self.part(&field.base)? == "shared").then_some((name, locks))
    }

    /// Returns the shared resource that `expr` is, if the handler has a lock right.
    fn resource<'e>(&self, expr: &'e Expr) -> Option<&'e Ident> {
        self.shared(expr).filter(|(_, locks)| *locks).map(|(name, _)| name)
    }

    /// Rejects `lock` of a number, a character or a Boolean that the context contains as a plain
    /// reference.
    ///
    /// Other types may have a method `lock`.
    fn needs_no_lock(&mut self, expr: &Expr) {
        let Some((name, false)) = self.shared(expr) else { return };
        let mut declared = self.app.shared.resources.iter().filter(|resource| resource.ident == *name);
        if declared.all(|resource| is_primitive(&resource.ty)) {
            let context = self.context.map(Ident::to_string).unwrap_or_default();
            self.errors.at(
                expr,
                format_args!(
                    "`{context}.shared.{name}` is a plain reference here, which needs no lock; use `*{context}.shared.{name}`"
                ),
            );
        }
    }

    /// Rejects a lock right where a value is needed; returns whether `expr` is one.
    fn value(&mut self, expr: &Expr) -> bool {
        let Some(name) = self.resource(expr) else { return false };
        let context = self.context.map(Ident::to_string).unwrap_or_default();
        self.errors.at(
            expr,
            format_args!(
                "`{name}` is a shared resource, which is locked before use: write \
                 `{context}.shared.{name}.lock(|{name}| ..)`"
            ),
        );
        true
    }

    /// Checks a field of the context, or of one of its parts; returns whether it is one of a part.
    fn field(&mut self, expr: &ExprField) -> bool {
        let Member::Named(name) = &expr.member else { return false };
        if let Expr::Path(path) = &*expr.base
            && path.path.get_ident() == self.context
            && self.context.is_some()
        {
            self.part_of_context(name);
            return false;
        }
        let part = self.part(&expr.base).filter(|part| *part == "shared" || *part == "local");
        if let Some(part) = part {
            self.unlisted(&part.to_string(), name);
        }
        part.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors};

    /// Returns the errors in the body of a task that lists one lock, one reference, and one local.
    pub(super) fn in_body(body: TokenStream) -> Vec<String> {
        errors(quote! {
            #[shared] struct Shared { count: u32, table: [u8; 2], other: u8, #[lock_free] free: u8 }
            #[local] struct Local { line: u8, spare: u8 }
            #[task(shared = [count, &table, free], local = [line])]
            fn t(mut cx: t::Context) { #body }
        })
    }

    #[test]
    fn accepts_valid_bodies() {
        let errors = in_body(quote! {
            cx.shared.count.lock(|count| *count += 1);
            (&mut cx.shared.count).lock(|count| *count += 1);
            helper(&mut cx.shared.count, cx.shared.table[0]);
            *cx.shared.free += cx.shared.table[1];
            println!("{}", cx.local.line);
            let other = other_context();
            vec![other.shared.missing; 3];
            fn nested(cx: Other) -> u8 { cx.device + *cx.shared.count }
        });
        assert_eq!(errors, [""; 0]);
    }

    #[test]
    fn does_not_follow_rebound_names() {
        assert_eq!(in_body(quote!(let cx = other(); *cx.shared.count += cx.device;)), [""; 0]);
        assert_eq!(in_body(quote!(each(|cx: Other| cx.shared.missing);)), [""; 0]);
    }

    #[test]
    fn reads_no_body_with_conditions() {
        assert_eq!(
            in_body(quote!(if true {
                #[cfg(x)]
                cx.shared.missing.lock(|_| ());
            })),
            [""; 0]
        );
        assert_eq!(
            in_body(quote!(if cfg!(x) {
                cx.shared.missing.lock(|_| ());
            }))
            .len(),
            1
        );
    }

    #[test]
    fn shared_resource_without_lock() {
        for body in [
            quote!(*cx.shared.count += 1;),
            quote!(cx.shared.count += 1;),
            quote!(cx.shared.count = 1;),
            quote!(let x = cx.shared.count + 1;),
            quote!(let x = cx.shared.count[0];),
            quote!(let x = cx.shared.count.x;),
            quote!(println!("{}", cx.shared.count);),
        ] {
            assert_one(&in_body(body), &["write `cx.shared.count.lock(|count| ..)`"]);
        }
    }

    #[test]
    fn resource_locked_twice() {
        let twice = quote!(cx.shared.count.lock(|a| cx.shared.count.lock(|b| *b = *a)););
        assert_one(&in_body(twice), &["`count` is already locked here"]);
    }

    #[test]
    fn writes_to_resource_listed_by_reference() {
        for body in [
            quote!(cx.shared.table[0] = 1;),
            quote!(*cx.shared.table = [1, 2];),
            quote!(cx.shared.table.x += 1;),
        ] {
            assert_one(&in_body(body), &["listed as `&table`; list `table` without `&` everywhere"]);
        }
        assert_eq!(in_body(quote!(let x = cx.shared.table[0] + 1; *cx.shared.free = x;)), [""; 0]);
    }

    #[test]
    fn duration_in_place_of_a_point_in_time() {
        assert_one(
            &in_body(quote!(t::spawn_at(10.millis()).ok();)),
            &["write `t::spawn_after(10.millis(), ..)`"],
        );
        assert_one(
            &in_body(quote!(punctual::delay_until(1.secs());)),
            &["write `punctual::delay(1.secs())`"],
        );
        let valid = quote! {
            t::spawn_at(punctual::now() + 10.millis()).ok();
            t::spawn_after(10.millis()).ok();
            other::spawn_at(10.millis());
            delay_until(10.millis());
        };
        assert_eq!(in_body(valid), [""; 0]);
    }

    #[test]
    fn app_run_by_its_task() {
        assert_one(&in_body(quote!(app::run(config()).ok();)), &["call it in `main`"]);
    }
}
