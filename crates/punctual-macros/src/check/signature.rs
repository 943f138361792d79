//! Signatures of handlers: plain functions that take their own context and return the type of their
//! role.

use syn::visit::Visit;
use syn::{Attribute, GenericArgument, Ident, Lifetime, PathArguments, PathSegment, ReturnType, Type};

use crate::errors::Errors;
use crate::model::{App, Handler, Role, TaskKind};
use crate::parse::last_two;

pub(super) fn check(app: &App, errors: &mut Errors) {
    for handler in app.handlers() {
        asyncness(app, handler, errors);
        modifiers(handler, errors);
        generics(handler, errors);
        context(handler, errors);
        output(handler, errors);
    }
}

/// Only a spawned task can wait.
fn asyncness(app: &App, handler: &Handler, errors: &mut Errors) {
    let Some(keyword) = &handler.sig().asyncness else { return };
    let name = &handler.ident;
    let message = match app.task(handler).map(|task| &task.kind) {
        Some(TaskKind::Async) => return,
        Some(TaskKind::Periodic { .. }) => format!(
            "`{name}` is released by the clock and cannot be async; remove `async`, or remove `period` and await \
             the ticks of `punctual::every(..)`"
        ),
        Some(_) => {
            format!("`{name}` is released by its event source and cannot be async; remove `async`")
        }
        None => format!("`{name}` is called by the framework and cannot wait; remove `async`"),
    };
    errors.at(keyword, message);
}

fn modifiers(handler: &Handler, errors: &mut Errors) {
    let (sig, name) = (handler.sig(), &handler.ident);
    if let Some(keyword) = &sig.unsafety {
        errors.at(keyword, format_args!("`{name}` is called by the framework; it cannot be `unsafe`"));
    }
    if let Some(keyword) = &sig.constness {
        errors.at(keyword, format_args!("`{name}` runs at run time; remove the `const`"));
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, format_args!("`{name}` is called from Rust; remove the `extern`"));
    }
    let feature = |attr: &&Attribute| attr.path().is_ident("target_feature");
    if let Some(attr) = handler.item.attrs().iter().find(feature) {
        errors.at(
            attr,
            format_args!(
                "`{name}` is called by the framework, which does not check CPU features; put \
                 `#[target_feature]` on a function that `{name}` calls"
            ),
        );
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, format_args!("`{name}` takes a fixed list of arguments; remove the `...`"));
    }
}

fn generics(handler: &Handler, errors: &mut Errors) {
    let generics = &handler.sig().generics;
    let message = |remedy| {
        let name = &handler.ident;
        format!("`{name}` is a single function, so it cannot be generic; {remedy}")
    };
    if !generics.params.is_empty() {
        errors.at(generics, message("remove the parameters, or call a generic function in it"));
    } else if let Some(clause) = &generics.where_clause {
        errors.at(clause, message("remove the `where` clause"));
    }
}

fn context(handler: &Handler, errors: &mut Errors) {
    let name = &handler.ident;
    let expected = format!("write `fn {name}(cx: {name}::Context, ..)`");
    let Some(context) = &handler.context else {
        errors.at(name, format_args!("`{name}` does not take its context; {expected}"));
        return;
    };
    match context_owner(&context.ty) {
        Some(owner) if owner == name => context_lifetime(handler, &context.ty, errors),
        Some(owner) => errors.at(
            &context.ty,
            format_args!("this is the context of `{owner}`, but `{name}` takes its own; {expected}"),
        ),
        None => {
            errors.at(&context.ty, format_args!("the first parameter of `{name}` is its context; {expected}"))
        }
    }
}

/// The contents of a context live as long as its job. That of `init` never ends.
fn context_lifetime(handler: &Handler, ty: &Type, errors: &mut Errors) {
    struct Named<'ast>(Option<&'ast Lifetime>);
    impl<'ast> Visit<'ast> for Named<'ast> {
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident != "_" {
                self.0 = Some(lifetime);
            }
        }
    }
    let mut named = Named(None);
    named.visit_type(ty);
    if let Some(lifetime) = named.0
        && handler.role != Role::Init
        && handler.sig().generics.params.is_empty()
    {
        let name = &handler.ident;
        errors.at(
            lifetime,
            format_args!(
                "a context lasts as long as its job; write `{name}::Context` or `{name}::Context<'_>`"
            ),
        );
    }
}

/// Returns the `x` of `x::Context` or `x::Context<'_>`, by any path.
fn context_owner(ty: &Type) -> Option<&Ident> {
    let Type::Path(ty) = ty else { return None };
    let (owner, context) = last_two(&ty.path)?;
    (ty.qself.is_none() && owner.arguments.is_none() && context.ident == "Context" && only_lifetimes(context))
        .then_some(&owner.ident)
}

fn only_lifetimes(segment: &PathSegment) -> bool {
    match &segment.arguments {
        PathArguments::None => true,
        PathArguments::AngleBracketed(list) => {
            list.args.iter().all(|arg| matches!(arg, GenericArgument::Lifetime(_)))
        }
        PathArguments::Parenthesized(_) => false,
    }
}

/// The return type of `init` is a separate rule.
fn output(handler: &Handler, errors: &mut Errors) {
    let ReturnType::Type(_, ty) = &handler.sig().output else { return };
    let name = &handler.ident;
    let unit = matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty());
    match handler.role {
        Role::Task if handler.sig().asyncness.is_some() && matches!(**ty, Type::Never(_)) => {}
        Role::Task | Role::Shutdown if !unit => {
            errors.at(
                ty,
                format_args!("`{name}` has no caller that uses a return value; remove the return type"),
            );
        }
        Role::Idle if !unit && !matches!(**ty, Type::Never(_)) => {
            errors.at(
                ty,
                format_args!("`{name}` returns nothing, or never: remove the return type, or write `-> !`"),
            );
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[track_caller]
    fn rejects(items: TokenStream, parts: &[&str]) {
        assert_one(&errors(items), parts);
    }

    #[test]
    fn async_handlers() {
        let errors = errors(quote! {
            #[task] async fn t(cx: t::Context) {}
            #[task] async fn u(cx: u::Context, n: u8) -> ! { loop {} }
            extern "Rust" { #[task] async fn v(cx: v::Context); }
        });
        assert!(errors.is_empty(), "{errors:#?}");
        rejects(
            quote! { #[task(period = 1.secs())] async fn t(cx: t::Context) {} },
            &["`t` is released by the clock", "`punctual::every(..)`"],
        );
        rejects(
            quote! { #[idle] async fn idle(cx: idle::Context) {} },
            &["`idle` is called by the framework"],
        );
        rejects(quote! { #[task] async fn t(cx: t::Context) -> u8 { 0 } }, &["remove the return type"]);
    }

    #[test]
    fn unsafe_task() {
        rejects(quote! { #[task] unsafe fn t(cx: t::Context) {} }, &["cannot be `unsafe`"]);
    }

    #[test]
    fn const_task() {
        rejects(quote! { #[task] const fn t(cx: t::Context) {} }, &["remove the `const`"]);
    }

    #[test]
    fn extern_c_task() {
        rejects(quote! { #[task] extern "C" fn t(cx: t::Context) {} }, &["remove the `extern`"]);
    }

    #[test]
    fn task_with_target_feature() {
        rejects(
            quote! { #[target_feature(enable = "avx2")] #[task] fn t(cx: t::Context) {} },
            &["does not check CPU features", "a function that `t` calls"],
        );
    }

    #[test]
    fn rejects_async_task_with_name_of_bound_task() {
        rejects(
            quote! {
                #[local] struct Local { tick: Timer }
                #[task(binds = tick, local = [tick])] fn t(cx: t::Context) {}
                #[task] async fn t(cx: t::Context) {}
            },
            &["a function `t` already exists"],
        );
    }

    #[test]
    fn generic_task() {
        rejects(quote! { #[task] fn t<T>(cx: t::Context) {} }, &["cannot be generic"]);
        rejects(quote! { #[task] fn t<'a>(cx: t::Context<'a>) {} }, &["cannot be generic"]);
        rejects(quote! { #[task] fn t(cx: t::Context) where u8: Copy {} }, &["cannot be generic"]);
    }

    #[test]
    fn missing_context() {
        rejects(quote! { #[task] fn t() {} }, &["does not take its context", "`fn t(cx: t::Context, ..)`"]);
        rejects(quote! { #[task] fn t(a: u32) {} }, &["the first parameter of `t` is its context"]);
        rejects(quote! { #[task] fn t(cx: &t::Context) {} }, &["the first parameter of `t` is its context"]);
    }

    #[test]
    fn context_of_another_task() {
        rejects(
            quote! { #[task] fn t(cx: u::Context) {} },
            &["this is the context of `u`", "`t` takes its own"],
        );
    }

    #[test]
    fn context_with_longer_lifetime() {
        rejects(
            quote! { #[task] fn t(cx: t::Context<'static>) {} },
            &["lasts as long as its job", "`t::Context<'_>`"],
        );
        rejects(quote! { #[idle] fn idle(cx: idle::Context<'static>) {} }, &["write `idle::Context` or"]);
    }

    #[test]
    fn task_returns() {
        rejects(quote! { #[task] fn t(cx: t::Context) -> u32 { 0 } }, &["remove the return type"]);
        rejects(quote! { #[task] fn t(cx: t::Context) -> ! { loop {} } }, &["remove the return type"]);
    }

    #[test]
    fn idle_returns() {
        rejects(quote! { #[idle] fn idle(cx: idle::Context) -> u32 { 0 } }, &["write `-> !`"]);
    }

    #[test]
    fn shutdown_returns() {
        let items = quote! { #[shutdown] fn shutdown(cx: shutdown::Context) -> u32 { 0 } };
        rejects(items, &["remove the return type"]);
    }

    #[test]
    fn spellings_of_context() {
        let errors = errors(quote! {
            #[shared] struct Shared { a: u8 }
            #[idle] fn idle(_: idle::Context<'_>) -> ! { loop {} }
            #[task(shared = [a])] fn t(t::Context { mut shared, .. }: t::Context) {}
            #[task] fn u(_cx: u::Context) -> () {}
            #[task] fn v(_: self::v::Context<'_>) {}
        });
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
