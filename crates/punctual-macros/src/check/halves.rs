//! What crosses between the halves of an app.

use crate::errors::Errors;
use crate::model::{App, Beyond, TaskKind};

/// What an inbox has room for.
const CAPACITY: u16 = 64;

pub(super) fn check(app: &App, errors: &mut Errors) {
    let Some(beyond) = &app.beyond else {
        for key in app.tasks.iter().filter_map(|task| task.crosses.as_ref()) {
            errors.at(
                key,
                "no partition is `offline`, so every task can be spawned from everywhere; remove `crosses`",
            );
        }
        return;
    };
    crossing(app, errors);
    interrupt(app, beyond, errors);
    names(app, beyond, errors);
}

fn crossing(app: &App, errors: &mut Errors) {
    for task in &app.tasks {
        let Some(key) = &task.crosses else { continue };
        let name = &task.handler.ident;
        if !matches!(task.kind, TaskKind::Message) {
            errors.at(
                key,
                format_args!(
                    "`{name}` is released by the clock, by an event, or as a future, and spawns that cross are messages: remove `crosses`, \
                     and have a task that `crosses` release it"
                ),
            );
        }
        if let Some(capacity) = task.capacity_key.as_ref().filter(|_| task.capacity > CAPACITY) {
            errors.at(
                capacity,
                format_args!("a task that `crosses` has a `capacity` of {CAPACITY} at most; a `Ring` in a `#[both] static` takes more"),
            );
        }
        if let Some(cfg) = task.handler.cfgs.first() {
            errors.at(
                cfg,
                format_args!("`{name}` has to be there for both halves, which are configured apart; put the `#[cfg]` into its body"),
            );
        }
    }
}

/// The receiver has the interrupt by which Linux rings.
fn interrupt(app: &App, beyond: &Beyond, errors: &mut Errors) {
    for task in app.tasks.iter().filter(|_| beyond.is_offline) {
        if let TaskKind::Bound { source, .. } = &task.kind
            && source == "BELL"
        {
            errors.at(
                source,
                "the halves of an app wake each other by `BELL`; let this task take messages instead: remove `binds`, and write `crosses`",
            );
        }
    }
}

fn names(app: &App, beyond: &Beyond, errors: &mut Errors) {
    for task in &beyond.tasks {
        let name = &task.handler.ident;
        if app.handlers().any(|own| own.ident == *name) {
            errors.at(
                name,
                format_args!(
                    "both halves have a `{name}`; rename one, since each can be spawned from the other"
                ),
            );
        }
    }
}

/// Why a resource that a handler asks for is not there, if it is one of the other half's.
pub(super) fn beyond(app: &App, name: &syn::Ident) -> Option<String> {
    let beyond = app.beyond.as_ref().filter(|beyond| beyond.resources.contains(name))?;
    let other = &beyond.other;
    Some(format!(
        "`{name}` is a resource of `{other}`, the other half of the app, and no lock reaches across: share the newest value by \
         `#[both] static {upper}: Latest<..>`, a stream by a `Ring`, or spawn a task of `{other}` that `crosses`",
        upper = name.to_string().to_uppercase()
    ))
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors_of_module};

    /// The errors of an app with the halves `control` and `ui`, of which `items` are a part.
    fn errors(items: TokenStream) -> Vec<String> {
        errors_of_module(
            quote!(partitions = [control(offline), ui]),
            quote! {
                #[shared(core = control)] struct Shared { near: u8 }
                #[local(core = control)] struct Local {}
                #[init(core = control)] fn init(cx: init::Context) -> (Shared, Local) { loop {} }
                #[shared(core = ui)] struct Shared { far: u8 }
                #[local(core = ui)] struct Local { screen: u8 }
                #[init(core = ui, local = [a: u8 = 0])] fn init(cx: init::Context) -> (Shared, Local) { loop {} }
                #[task(core = control, period = 1.millis(), shared = [near])] fn sample(cx: sample::Context) {}
                #[task(core = ui, crosses, shared = [far])] fn show(cx: show::Context, what: u8) {}
                #items
            },
        )
    }

    #[test]
    fn each_half_has_its_own() {
        assert_eq!(
            errors(quote!(
                #[both]
                static WANTED: Latest<u8> = Latest::new(0);
            )),
            [""; 0]
        );
    }

    #[test]
    fn a_resource_of_the_other_half_cannot_be_locked() {
        let far = errors(quote!(
            #[task(core = control, shared = [far])]
            fn t(cx: t::Context) {}
        ));
        assert_one(&far, &["`far` is a resource of `ui`", "#[both] static FAR: Latest<..>"]);
        let near = errors(quote!(
            #[idle(core = ui, shared = [&near])]
            fn idle(cx: idle::Context) {}
        ));
        assert_one(&near, &["`near` is a resource of `control`"]);
        let local = errors(quote!(
            #[task(core = control, local = [screen])]
            fn t(cx: t::Context) {}
        ));
        assert_one(&local, &["`screen` is a resource of `ui`"]);
    }

    #[test]
    fn what_crosses_is_a_message() {
        let periodic = errors(quote!(
            #[task(core = ui, period = 1.millis(), crosses)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&periodic, &["`t` is released by the clock", "remove `crosses`"]);
        let many = errors(quote!(
            #[task(core = ui, crosses, capacity = 65)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&many, &["`capacity` of 64 at most"]);
        let cfg = errors(quote!(
            #[cfg(all())]
            #[task(core = control, crosses)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&cfg, &["`t` has to be there for both halves"]);
        let whole = crate::testing::errors(quote!(
            #[task(crosses)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&whole, &["no partition is `offline`", "remove `crosses`"]);
    }

    #[test]
    fn everything_says_whose_it_is() {
        let silent = errors(quote!(
            #[idle]
            fn idle(cx: idle::Context) {}
        ));
        assert_one(&silent, &["`#[idle]` says whose it is: `#[idle(core = control)]`"]);
        let unknown = errors(quote!(
            #[task(core = uo)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&unknown, &["no partition is named `uo`; there are `control`, `ui`"]);
        let bell = errors(quote!(
            #[task(core = control, binds = BELL)]
            fn t(cx: t::Context) {}
        ));
        assert_one(&bell, &["wake each other by `BELL`"]);
        let twice = errors(quote!(
            #[task(core = control)]
            fn show(cx: show::Context) {}
        ));
        assert!(twice.iter().all(|error| error.contains("both halves have a `show`")), "{twice:#?}");
        let outside = errors(quote!(
            extern "Rust" {
                #[task(core = ui)]
                fn t(cx: t::Context);
            }
        ));
        assert_one(&outside, &["are in its module"]);
    }

    #[test]
    fn one_cpu_runs_without_linux_and_the_others_with_it() {
        let none = |args| errors_of_module(args, quote!());
        assert!(none(quote!(partitions = [a(offline), b(offline), c]))[0].contains("`b` is the second"));
        assert!(none(quote!(partitions = [a(offline)]))[0].contains("no partition is left for Linux"));
    }
}
