//! Parameters of handlers after the context, and types of stored values.

use syn::visit::{self, Visit};
use syn::{
    Ident, Item, Lifetime, ParenthesizedGenericArguments, Type, TypeBareFn, TypeImplTrait, TypePath,
    TypeReference,
};

use crate::errors::Errors;
use crate::model::{App, Handler, LocalOrigin, Role, TaskKind};

pub(super) fn check(app: &App, errors: &mut Errors) {
    for handler in app.handlers() {
        opaque_types(handler, errors);
        borrowed_locals(app, handler, errors);
        match handler.role {
            Role::Idle | Role::Shutdown => context_only(handler, "is called by the framework", errors),
            Role::Task => borrowed_messages(app, handler, errors),
            Role::Init => {}
        }
    }
    for task in &app.tasks {
        match task.kind {
            TaskKind::Message | TaskKind::Async => {}
            TaskKind::Periodic { .. } => context_only(&task.handler, "is released by the clock", errors),
            TaskKind::Bound { .. } => context_only(&task.handler, "is released by its event source", errors),
        }
    }
}

fn context_only(handler: &Handler, why: &str, errors: &mut Errors) {
    if let Some(arg) = handler.args.first() {
        let name = &handler.ident;
        errors.at(
            &arg.pat,
            format_args!("`{name}` {why}, which has no arguments to pass; it takes only its context"),
        );
    }
}

/// `impl Trait` makes a function implicitly generic.
fn opaque_types(handler: &Handler, errors: &mut Errors) {
    struct Opaque<'a>(&'a mut Errors);
    impl<'ast> Visit<'ast> for Opaque<'_> {
        fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
            self.0.at(ty, "a handler cannot be generic; name the type in place of `impl`");
        }
    }
    for arg in &handler.args {
        Opaque(errors).visit_type(&arg.ty);
    }
}

/// A message outlives its sender's job, in a queue.
fn borrowed_messages(app: &App, handler: &Handler, errors: &mut Errors) {
    for arg in &handler.args {
        let message = "a message outlives the call that sends it; pass the value, or a `&'static`";
        borrowed(app, &arg.ty, message, errors);
    }
}

/// A local keeps its value from one job to the next.
fn borrowed_locals(app: &App, handler: &Handler, errors: &mut Errors) {
    for local in &handler.locals {
        if let LocalOrigin::Declared { ty, .. } = &local.origin {
            let message = "a local resource outlives every job; keep the value, or a `&'static`";
            borrowed(app, ty, message, errors);
        }
    }
}

/// Records `message` for every lifetime in `ty` that is not `'static`, as far as the types of the
/// module show it.
fn borrowed(app: &App, ty: &Type, message: &str, errors: &mut Errors) {
    struct Borrowed<'a>(&'a App, &'a str, &'a mut Errors);
    impl<'ast> Visit<'ast> for Borrowed<'_> {
        fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
            if ty.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") {
                self.2.at(ty, self.1);
            }
            visit::visit_type(self, &ty.elem);
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident == "_" {
                self.2.at(lifetime, format_args!("{}: `'static` in place of `'_`", self.1));
            }
        }

        fn visit_type_path(&mut self, ty: &'ast TypePath) {
            if let Some(name) = ty.path.get_ident()
                && let Some(lifetimes) = lifetimes(&self.0.items, name)
            {
                let written = vec!["'static"; lifetimes].join(", ");
                self.2.at(ty, format_args!("{}: `{name}<{written}>` in place of `{name}`", self.1));
            }
            visit::visit_type_path(self, ty);
        }

        // References in the signature of a function are not held by it.
        fn visit_type_bare_fn(&mut self, _: &'ast TypeBareFn) {}
        fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}
    }
    Borrowed(app, message, errors).visit_type(ty);
}

/// Returns the number of lifetimes of a type among `items`, if it has any; `name` alone elides
/// them.
pub(crate) fn lifetimes(items: &[Item], name: &Ident) -> Option<usize> {
    let generics = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some((&item.ident, &item.generics)),
        Item::Enum(item) => Some((&item.ident, &item.generics)),
        Item::Union(item) => Some((&item.ident, &item.generics)),
        Item::Type(item) => Some((&item.ident, &item.generics)),
        _ => None,
    });
    // Several have different `#[cfg]`s.
    let mut all =
        generics.filter(|(ident, _)| *ident == name).map(|(_, generics)| generics.lifetimes().count());
    let first = all.next().filter(|lifetimes| *lifetimes > 0)?;
    all.all(|lifetimes| lifetimes == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[test]
    fn borrowed_message() {
        let one = errors(quote! { #[task] fn t(cx: t::Context, a: Option<&u32>) {} });
        assert_one(&one, &["outlives the call", "&'static"]);
        let hidden = errors(quote! { #[task] fn t(cx: t::Context, a: Wrap<'_>) {} });
        assert_one(&hidden, &["outlives the call", "`'static` in place of `'_`"]);
        let elided = errors(quote! {
            struct Wrap<'a>(&'a str);
            #[task] fn t(cx: t::Context, a: Vec<Wrap>, b: Wrap<'static>, c: other::Wrap) {}
        });
        assert_one(&elided, &["outlives the call", "`Wrap<'static>` in place of `Wrap`"]);
        let either = errors(quote! {
            #[cfg(a)] struct Wrap<'a>(&'a str);
            #[cfg(not(a))] struct Wrap;
            #[task] fn t(cx: t::Context, a: Wrap) {}
        });
        assert!(either.is_empty(), "{either:#?}");
        let none = errors(
            quote! { #[task] fn t(cx: t::Context, a: &'static str, f: fn(&u8), b: Box<dyn Fn(&u8)>) {} },
        );
        assert!(none.is_empty(), "{none:#?}");
    }

    #[test]
    fn borrowed_local() {
        let one =
            errors(quote! { #[task(local = [a: &str = "", b: &'static str = ""])] fn t(cx: t::Context) {} });
        assert_one(&one, &["outlives every job", "&'static"]);
    }
}
