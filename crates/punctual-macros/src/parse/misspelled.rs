//! Attributes of the framework that are missing or misspelled, and constructs of RTIC that are not
//! needed here, with their replacements.

use syn::{Attribute, FnArg, Item, ItemFn, Type};

use super::attributes::item_attrs;
use crate::errors::Errors;
use crate::parse::last_two;
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
    let meant = |attr: &Attribute| match &*attr.path().get_ident()?.to_string() {
        "interrupt" | "exception" => Some("task"),
        "test" => None,
        _ => misspells(attr, &ROLES),
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
            report(&attr, &ROLES, errors);
        }
    }
    true
}

/// Returns the one of `names` that the attribute misspells, if it is not one of them itself.
pub(crate) fn misspells(attr: &Attribute, names: &[&'static str]) -> Option<&'static str> {
    let given = attr.path().get_ident()?.to_string();
    if names.contains(&&*given) { None } else { suggest::nearest(&given, names.iter().copied()) }
}

/// Reports an attribute that misspells one of `names`; returns that.
pub(super) fn report(attr: &Attribute, names: &[&'static str], errors: &mut Errors) -> Option<&'static str> {
    let (meant, given) = (misspells(attr, names)?, attr.path().get_ident()?);
    errors.at(given, format_args!("unknown attribute `{given}`; did you mean `{meant}`?"));
    Some(meant)
}

/// Returns whether the first parameter of a function `x` is `x::Context`.
fn takes_own_context(function: &ItemFn) -> bool {
    let Some(FnArg::Typed(parameter)) = function.sig.inputs.first() else { return false };
    let Type::Path(ty) = &*parameter.ty else { return false };
    last_two(&ty.path)
        .is_some_and(|(module, last)| last.ident == "Context" && module.ident == function.sig.ident)
}

/// Returns the advice for a key of an attribute of RTIC.
pub(super) fn rtic_key(name: &str) -> Option<&'static str> {
    Some(match name {
        "device" => "there is no device crate; remove it, and open the devices of the tasks in `init`",
        "peripherals" => "there are no peripherals; remove it, and open the devices of the tasks in `init`",
        "dispatchers" | "extern_interrupts" => "every level has a thread; remove it",
        "resources" => "write `shared = [..]` and `local = [..]`",
        "spawn" | "schedule" => "every task may spawn every other, by `task::spawn`; remove it",
        "monotonic" => "the clock is `CLOCK_MONOTONIC`, see `punctual::now`; remove it",
        _ => return None,
    })
}

/// Removes an RTIC attribute from an item.
pub(crate) fn take_attribute(item: &mut Item, errors: &mut Errors) -> Option<Attribute> {
    let attrs = item_attrs(item)?;
    let attr = attrs.extract_if(.., |attr| attr.path().is_ident("monotonic")).next()?;
    errors.at(
        &attr,
        "the clock is `CLOCK_MONOTONIC`, and `spawn_after` and `punctual::now` use it; remove this item",
    );
    Some(attr)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors, errors_of_module, errors_with};

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
    fn misspelled_attributes_of_structs_and_fields() {
        let resources = quote! {
            #[share] struct Shared { a: u8 }
            #[derive(Debug)] #[locals] struct Local {}
            #[init] fn init(cx: init::Context) -> (Shared, Local) {}
            #[shard] struct Other;
        };
        let errors_of_structs = errors_of_module(quote!(), resources);
        assert_eq!(
            errors_of_structs,
            [
                "unknown attribute `share`; did you mean `shared`?",
                "unknown attribute `locals`; did you mean `local`?",
            ]
        );
        let field = quote! { #[shared] struct Shared { #[lockfree] a: u8, #[allow(unused)] b: u8 } };
        assert_one(&errors(field), &["unknown attribute `lockfree`; did you mean `lock_free`?"]);
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

    #[test]
    fn keys_of_rtic() {
        let task = || quote! { #[task] fn t(cx: t::Context) {} };
        assert_one(&errors_with(quote!(device = stm32f4::pac), task()), &["no device crate", "in `init`"]);
        assert_one(&errors_with(quote!(dispatchers = [EXTI0]), task()), &["every level has a thread"]);
        assert_one(
            &errors(quote! { #[task(resources = [a])] fn t(cx: t::Context) {} }),
            &["`shared = [..]`"],
        );
        let monotonic = quote! { #[monotonic(binds = SysTick)] type Mono = Systick<1000>; };
        assert_one(&errors(monotonic), &["`CLOCK_MONOTONIC`", "remove this item"]);
    }

    #[test]
    fn interrupts_of_rtic() {
        assert_one(
            &errors(quote! { #[task(binds = UART0)] fn t(cx: t::Context) {} }),
            &["there are no interrupts", "a field of the `#[local]` struct", "local = [uart0]"],
        );
    }
}
