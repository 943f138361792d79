//! Names in generated code: `tests/it/hygiene.rs` defines a user item with each of them.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;

use crate::errors::Errors;
use crate::parse::Source;

/// The file with the names. `BLESS=1` writes it.
const NAMES: &str = "tests/ui/support/generated_names.rs";

/// Prefix of the user's names here.
const USERS: [char; 2] = ['q', 'Q'];

/// Names in the module of an app that belong to the framework.
const RESERVED: [&str; 5] = ["init", "idle", "shutdown", "run", "MODEL"];

/// Returns the code of apps that together use every construct.
pub(super) fn apps() -> Vec<TokenStream> {
    let everything = quote! {
        #[shared]
        struct Shared {
            q_lock: QType,
            q_across: QType,
            q_ref: QType,
            #[lock_free] q_free: QType,
        }
        #[local]
        struct Local { q_source: QType, q_idle: QType, q_unused: QType, q_field: QType }
        #[idle(shared = [q_lock], local = [q_idle, q_of_idle: QType = QValue])]
        fn idle(q: idle::Context) {}
        #[shutdown(shared = [q_lock], local = [q_field, q_of_shutdown: QType = QValue])]
        fn shutdown(q: shutdown::Context) {}
        #[task(priority = 2, shared = [q_lock, q_across, q_free], local = [q_field, q_own: QType = QValue])]
        fn q_message(q: q_message::Context, q_one: QType, q_two: QType) {}
        #[task(priority = 3, binds = q_source, local = [q_source], shared = [&q_ref])]
        fn q_bound(q: q_bound::Context) {}
        #[task(period = 1.millis(), offset = 1.millis(), deadline = QValue, on_overrun = stop, budget = 1.millis())]
        fn q_stops(q: q_stops::Context) {}
        #[task(period = 1.millis(), on_overrun = q_handler, execution = 1.millis())]
        fn q_periodic(q: q_periodic::Context) {}
        #[task]
        fn q_handler(q: q_handler::Context) {}
        #[task(min_interval = QValue, burst = 3, capacity = 4, budget = QValue, on_budget = kill)]
        fn q_counted(q: q_counted::Context) {}
        #[task(min_interval = 1.millis(), on_early = delay)]
        fn q_delayed(q: q_delayed::Context) {}
        #[task(min_interval = 1.millis(), on_early = reject)]
        fn q_rejected(q: q_rejected::Context) {}
        #[task(priority = 2, shared = [q_lock], waits = 2)]
        async fn q_async(q: q_async::Context, q_one: QType) {}
        #[task(priority = 4)]
        async fn q_starts(q: q_starts::Context) {}
        #[task(priority = 4, local_task)]
        async fn q_local(q: q_local::Context, q_one: QType) {}
        extern "Rust" {
            #[task(shared = [q_lock])]
            fn q_extern(q: q_extern::Context, q_one: QType);
            #[task(local = [q_own: QType = QValue])]
            async fn q_extern_async(q: q_extern_async::Context);
        }
    };
    let one = quote!(
        cpu = 1,
        priority_base = 40,
        stack = QValue,
        monitor = false,
        wake_latency = 1.micros(),
        strict,
        trace,
        profile,
        report = "auto"
    );
    let partitioned = quote! {
        #everything
        #[task(core = q, shared = [q_across])] fn q_across(q: q_across::Context) {}
        #[task(core = qq, shared = [q_across])] async fn q_polled(q: q_polled::Context) {}
    };
    let apps = [
        (one, everything.clone()),
        (quote!(partitions = [qqq(cpu = QValue, stack = QValue), q, qq(poll)]), partitioned),
        (quote!(executor = "global"), everything),
    ];
    apps.into_iter().map(|(args, items)| generate(args, items)).collect()
}

fn generate(args: TokenStream, items: TokenStream) -> TokenStream {
    let module = quote! {
        mod app {
            #[init(local = [q_of_init: QType = QValue])]
            fn init(q: init::Context, q_argument: QType) -> (Shared, Local) {}
            #items
        }
    };
    let mut errors = Errors::default();
    let app = crate::front(args, Source::holding(module, &["all()"]), &mut errors);
    errors.finish().expect("the app has no mistakes");
    let (app, analysis, _) = app.expect("the app is whole");
    super::generated(&app, &analysis)
}

fn collect(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), names),
            TokenTree::Ident(ident) => names.extend(named(&ident)),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn named(ident: &Ident) -> Option<String> {
    let name = ident.to_string();
    let mangled = name.to_lowercase().starts_with("__punctual");
    let keyword = syn::parse_str::<Ident>(&name).is_err();
    let other = mangled || keyword || name.starts_with(USERS) || RESERVED.contains(&&*name);
    (!other && !["Shared", "Local"].contains(&&*name)).then_some(name)
}

#[test]
fn generated_names_are_free_for_users() {
    let mut names = BTreeSet::new();
    apps().into_iter().for_each(|generated| collect(generated, &mut names));
    let list = names.into_iter().map(|name| format!("    {name}\n")).collect::<String>();
    crate::assert_current(NAMES, &format!("names! {{\n{list}}}\n"));
}
