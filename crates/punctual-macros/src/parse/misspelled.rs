//! Handlers whose attribute is missing or misspelled.

use syn::{Attribute, FnArg, Item, ItemFn, Type};

use crate::errors::Errors;
use crate::suggest;

const ROLES: [&str; 4] = ["task", "init", "idle", "shutdown"];

/// Returns the attribute that a function was meant to have as a handler, because it takes the
/// context of its own name; the attribute is removed from the function.
///
/// `items` are those of the module, one of which may declare such a context.
pub(crate) fn take_misspelled(function: &mut ItemFn, items: &[Item], errors: &mut Errors) -> bool {
    let name = &function.sig.ident;
    let is_module = |item: &Item| matches!(item, Item::Mod(module) if module.ident == *name);
    if !takes_own_context(function) || items.iter().any(is_module) {
        return false;
    }
    let meant = |attr: &Attribute| {
        let given = attr.path().get_ident()?.to_string();
        match &*given {
            "interrupt" | "exception" => Some("task"),
            "test" => None,
            _ => suggest::nearest(&given, ROLES.into_iter()),
        }
    };
    let attrs = &mut function.attrs;
    let Some(at) = attrs.iter().position(|attr| meant(attr).is_some()) else {
        errors.at(
            name,
            format_args!(
                "`{name}` takes the context of a handler and has no attribute; write `#[task(..)]` above it"
            ),
        );
        return true;
    };
    let attr = attrs.remove(at);
    let given = attr.path().get_ident().map(ToString::to_string).unwrap_or_default();
    match &*given {
        "interrupt" | "exception" => errors.at(
            &attr,
            format_args!(
                "there are no interrupts here; write `#[task(binds = ..)]` for a task that an event source releases, not \
                 `#[{given}]`"
            ),
        ),
        _ => {
            let meant = meant(&attr).unwrap_or(ROLES[0]);
            errors.at(attr.path(), format_args!("unknown attribute `{given}`; did you mean `{meant}`?"));
        }
    }
    true
}

/// Returns whether the first parameter of a function `x` is `x::Context`.
fn takes_own_context(function: &ItemFn) -> bool {
    let Some(FnArg::Typed(parameter)) = function.sig.inputs.first() else { return false };
    let Type::Path(ty) = &*parameter.ty else { return false };
    let mut segments = ty.path.segments.iter().rev();
    segments.next().is_some_and(|last| last.ident == "Context")
        && segments.next().is_some_and(|module| module.ident == function.sig.ident)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[test]
    fn misspelled_or_missing_attributes() {
        let of = |items| errors(items);
        let taks = of(quote! { #[inline] #[taks(period = 1.secs())] fn control(_: control::Context) {} });
        assert_one(&taks, &["unknown attribute `taks`; did you mean `task`?"]);
        let interrupt = of(quote! { #[interrupt(binds = UART0)] fn uart(cx: uart::Context) {} });
        assert_one(&interrupt, &["write `#[task(binds = ..)]`", "not `#[interrupt]`"]);
        let none = of(quote! { #[inline] fn control(_: control::Context<'_>) {} });
        assert_one(&none, &["has no attribute; write `#[task(..)]` above it"]);
    }

    #[test]
    fn functions_that_cannot_be_handlers() {
        let errors = errors(quote! {
            #[taks] fn helper(a: u8) {}
            fn other(cx: &mut control::Context) {}
            mod own { pub struct Context; }
            fn own(cx: own::Context) {}
            #[task] fn control(_: control::Context) {}
        });
        assert_eq!(errors, [""; 0]);
    }
}
