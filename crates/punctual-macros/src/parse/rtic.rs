//! Constructs of RTIC that are not needed here, with their replacements.

use syn::{Attribute, Item};

use super::attributes::item_attrs;
use crate::errors::Errors;

/// Returns the advice for a key of an attribute.
pub(super) fn key(name: &str) -> Option<&'static str> {
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

    use crate::testing::{assert_one, errors, errors_with};

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
