//! Common mistakes in the bodies of handlers that the compiler reports poorly.
//!
//! A rejected body must be wrong. So a variable that is bound again anywhere in a body is not
//! followed, and a body with conditions is not checked.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprAsync, ExprAwait, ExprCall, ExprClosure, ExprField, ExprMethodCall, ExprUnary, FnArg, Ident,
    Item, Macro, Member, Pat, PatIdent, Stmt, Type,
};

use crate::analyse::{Analysis, LockKind};
use crate::errors::Errors;
use crate::model::{App, Handler, HandlerItem, IDLE_LEVEL, Role, TaskKind};
use crate::suggest;

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors) {
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
        let can_wait = item.sig.asyncness.is_some();
        let mut body = Body { app, analysis, handler, context, can_wait, locked: Vec::new(), errors };
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

struct Body<'a> {
    app: &'a App,
    analysis: &'a Analysis,
    handler: &'a Handler,
    /// The variable with the context.
    context: Option<&'a Ident>,
    /// True if `.await` is allowed here.
    can_wait: bool,
    /// The resources of the enclosing critical sections.
    locked: Vec<Ident>,
    errors: &'a mut Errors,
}

impl<'ast> Visit<'ast> for Body<'_> {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => {
                self.value(&binary.left);
                self.value(&binary.right);
            }
            Expr::Assign(assign) => {
                self.value(&assign.left);
            }
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
        self.field(expr);
        visit::visit_expr_field(self, expr);
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
        for arg in &call.args {
            self.keeps_reference_inside(&resource, arg);
        }
        self.visit_expr(&call.receiver);
        self.locked.push(resource);
        call.args.iter().for_each(|arg| self.visit_expr(arg));
        self.locked.pop();
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        let could = std::mem::replace(&mut self.can_wait, closure.asyncness.is_some());
        visit::visit_expr_closure(self, closure);
        self.can_wait = could;
    }

    fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
        let could = std::mem::replace(&mut self.can_wait, true);
        visit::visit_expr_async(self, block);
        self.can_wait = could;
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
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        let args = mac.parse_body_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated);
        match args {
            Ok(args) => {
                for arg in &args {
                    self.value(arg);
                    self.visit_expr(arg);
                }
            }
            Err(_) => self.tokens(mac.tokens.clone()),
        }
    }

    // Functions and closures in an item have no access to the context.
    fn visit_item(&mut self, _: &'ast Item) {}
}

impl Body<'_> {
    /// Reports a critical section that returns a reference to its resource.
    fn keeps_reference_inside(&mut self, resource: &Ident, section: &Expr) {
        let Expr::Closure(closure) = section else { return };
        let mut value = &*closure.body;
        while let Expr::Block(block) = value
            && let Some(Stmt::Expr(last, None)) = block.block.stmts.last()
        {
            value = last;
        }
        let Expr::Path(path) = value else { return };
        let mut parameters = closure.inputs.iter().filter_map(|input| match input {
            Pat::Ident(parameter) => Some(&parameter.ident),
            _ => None,
        });
        if let Some(name) = parameters.find(|name| path.path.is_ident(*name)) {
            self.errors.at(
                value,
                format_args!(
                    "a reference to `{resource}` is valid only in its critical section; use it there, or return \
                     a copy: `|{name}| {name}.clone()`"
                ),
            );
        }
    }

    fn waits(&mut self, expr: &ExprAwait) {
        let name = &self.handler.ident;
        let message = match (self.locked.last(), self.app.task(self.handler).map(|task| &task.kind)) {
            (Some(resource), _) => format!(
                "a critical section cannot wait; copy the needed values out of \
                 `{resource}.lock(..)`, and `.await` after it"
            ),
            (None, _) if self.handler.sig().asyncness.is_some() => {
                "a closure that is not `async` cannot wait; write `async ||`, or `.await` outside it"
                    .to_owned()
            }
            (None, Some(TaskKind::Message)) => {
                format!("`{name}` cannot wait; write `async fn {name}`, or remove the `.await`")
            }
            (None, Some(TaskKind::Periodic { .. })) => format!(
                "`{name}` is released by the clock and cannot wait; remove the `.await`, or remove `period`, write \
                 `async fn {name}`, and loop over `punctual::delay_until`"
            ),
            (None, Some(_)) => format!(
                "`{name}` is released by its event source and cannot wait; remove the `.await`, or spawn an async task"
            ),
            (None, None) => {
                format!("`{name}` is called by the framework and cannot wait; spawn an async task that does")
            }
        };
        self.errors.at(expr.await_token, message);
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

    /// Checks a field of the context, or of one of its parts.
    fn field(&mut self, expr: &ExprField) {
        let Member::Named(name) = &expr.member else { return };
        if let Expr::Path(path) = &*expr.base
            && path.path.get_ident() == self.context
            && self.context.is_some()
        {
            self.part_of_context(name);
        } else if let Some(part) = self.part(&expr.base) {
            self.unlisted(&part.to_string(), name);
        }
    }

    fn part_of_context(&mut self, name: &Ident) {
        let answer = match name.to_string().as_str() {
            "device" | "core" | "peripherals" => {
                "there are no peripherals; open the devices of the task in `init`, and pass them \
                 in the `#[local]` \
                 struct"
            }
            "resources" => "write `cx.shared.x` and `cx.local.x`",
            "cs" => {
                "there are no interrupts to disable; `init` runs before every task, and `lock` excludes tasks later"
            }
            "spawn" | "schedule" => {
                "write `task::spawn(..)`, `task::spawn_after(..)` or `task::spawn_at(..)`"
            }
            "start" | "scheduled" => {
                "the release time of a periodic task is `cx.released`; `punctual::now()` is the \
                 current time"
            }
            "monotonics" => "the clock is `CLOCK_MONOTONIC`, see `punctual::now`",
            _ => return,
        };
        self.errors.at(name, format_args!("`{name}` is a part of RTIC's contexts: {answer}"));
    }

    /// Reports a resource that is used but not listed.
    fn unlisted(&mut self, part: &str, name: &Ident) {
        let (app, handler) = (self.app, self.handler);
        let (listed, declared): (Vec<&Ident>, Vec<&Ident>) = match part {
            "shared" => (
                handler.shared.iter().map(|used| &used.ident).collect(),
                app.shared.resources.iter().map(|resource| &resource.ident).collect(),
            ),
            "local" => (
                handler.locals.iter().map(|used| &used.ident).collect(),
                app.local.fields.iter().map(|field| &field.ident).collect(),
            ),
            _ => return,
        };
        if listed.contains(&name) {
            return;
        }
        let (task, role) = (&handler.ident, handler.role.attribute());
        let message = if handler.role == Role::Init {
            match part {
                "shared" => "`init` creates the shared resources; work on the values before it returns them"
                    .to_owned(),
                _ => format!(
                    "declare `{name}` in the attribute: `#[init(local = [{name}: <type> = <expression>])]`"
                ),
            }
        } else if declared.contains(&name) {
            let list = listed.iter().map(|name| name.to_string()).chain([name.to_string()]);
            let list = list.collect::<Vec<_>>().join(", ");
            format!(
                "`{task}` uses `{name}` without listing it; add it to the attribute: `#[{role}({part} = [{list}])]`"
            )
        } else {
            let all = listed.iter().chain(&declared).map(|name| name.to_string()).collect::<Vec<_>>();
            let meant = suggest::nearest(&name.to_string(), all.iter().map(String::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            let place = if part == "shared" { &app.shared.item.ident } else { &app.local.item.ident };
            format!(
                "no {part} resource is named `{name}`{meant}{stop} declare it in `{place}`, and list it: \
                 `#[{role}({part} = [{name}])]`",
                stop = if meant.is_empty() { ";" } else { " Or" }
            )
        };
        self.errors.at(name, message);
    }

    /// Checks the tokens of a macro that are not a list of expressions: only unlisted names are
    /// found.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for token in &tokens {
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
        }
        let is = |token: &TokenTree, text: &str| token.to_token_stream().to_string() == text;
        let Some(context) = self.context.map(Ident::to_string) else { return };
        for window in tokens.windows(5) {
            let [first, dot, TokenTree::Ident(part), second_dot, TokenTree::Ident(name)] = window else {
                continue;
            };
            if is(first, &context) && is(dot, ".") && is(second_dot, ".") {
                self.unlisted(&part.to_string(), name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors};

    /// Returns the errors in the body of a task that lists one lock, one reference, and one local.
    fn in_body(body: TokenStream) -> Vec<String> {
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
            println!("{} {}", cx.local.line, cx.released);
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
    fn resource_used_but_not_listed() {
        for (body, list) in [
            (quote!(cx.shared.other.lock(|_| ());), "`#[task(shared = [count, table, free, other])]`"),
            (quote!(*cx.local.spare += 1;), "`#[task(local = [line, spare])]`"),
            (quote!(println!("{:?}", cx.local.spare);), "`#[task(local = [line, spare])]`"),
            (quote!(select! { x => cx.local.spare };), "`#[task(local = [line, spare])]`"),
        ] {
            assert_one(&in_body(body), &["without listing it; add it to the attribute", list]);
        }
        assert_one(&in_body(quote!(cx.shared.cuont.lock(|_| ());)), &["did you mean `count`?"]);
        assert_one(&in_body(quote!(cx.local.zoom;)), &["no local resource is named `zoom`", "`Local`"]);
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
    fn parts_of_rtic_contexts() {
        for (body, answer) in [
            (quote!(let p = cx.device;), "open the devices of the task in `init`"),
            (quote!(cx.core.SYST;), "open the devices of the task in `init`"),
            (quote!(cx.resources.x;), "write `cx.shared.x`"),
            (quote!(cx.spawn.t();), "write `task::spawn(..)`"),
            (quote!(let t = cx.scheduled;), "`cx.released`"),
        ] {
            assert_one(&in_body(body), &["RTIC's", answer]);
        }
    }

    #[test]
    fn waits_outside_async() {
        assert_one(&in_body(quote!(delay().await;)), &["write `async fn t`"]);
        assert_eq!(in_body(quote!(let f = async { delay().await };)), [""; 0]);
        let errors = errors(quote! {
            #[shared] struct Shared { a: u8 }
            #[task(shared = [a])] async fn t(mut cx: t::Context) { cx.shared.a.lock(|_| delay().await); }
            #[task(period = 1.secs())] fn u(_: u::Context) { delay().await }
            #[idle] fn idle(_: idle::Context) { delay().await }
        });
        for (error, part) in errors.iter().zip(["spawn an async task", "`.await` after it", "`delay_until`"])
        {
            assert!(error.contains(part.trim_matches('`')), "{part} is not in {error}");
        }
        assert_eq!(errors.len(), 3);
    }

    #[test]
    fn resource_locked_twice() {
        let twice = quote!(cx.shared.count.lock(|a| cx.shared.count.lock(|b| *b = *a)););
        assert_one(&in_body(twice), &["`count` is already locked here"]);
    }

    #[test]
    fn app_run_by_its_task() {
        assert_one(&in_body(quote!(app::run(config()).ok();)), &["call it in `main`"]);
    }
}
