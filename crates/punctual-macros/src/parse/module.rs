//! The items of the module: the framework's, and those passed through.

use syn::{Attribute, Item, ItemForeignMod, ItemMod};

use super::attributes::{Mark, item_attrs, take_mark};
use super::conditions::{Absent, Conditions};
use super::constants::Constants;
use super::handler::{self, Marked, foreign_fn};
use super::misspelled::{self, take_misspelled};
use super::{resources, task};
use crate::errors::Errors;
use crate::model::{App, AppArgs, HandlerItem, Idle, Init, Local, Module, Role, Shared, Shutdown, Task};

/// Returns the model of `module`, unless a mandatory part is missing.
pub(super) fn parse(
    args: AppArgs,
    module: ItemMod,
    conditions: &Conditions,
    absent: &Absent,
    errors: &mut Errors,
) -> Option<App> {
    let ItemMod { attrs, vis, ident, content, .. } = module;
    let Some((_, items)) = content else {
        errors.at(&ident, format_args!("the application's items must be inline: `mod {ident} {{ .. }}`"));
        return None;
    };
    let constants = Constants::of(&items);
    let mut parts = Parts::new(conditions, &constants);
    for item in items {
        parts.item(item, errors);
    }
    let mut left_out = Parts::new(conditions, &constants);
    for item in absent.items.iter().cloned() {
        left_out.item(item, &mut Errors::default());
    }
    parts.report_misspelled(errors);
    parts.report_missing(&ident, &left_out.seen, errors);
    let fields = absent.fields.iter().filter_map(|field| field.ident.clone()).collect();
    let (idle, shutdown) = (left_out.idle.map(|idle| idle.handler), left_out.shutdown.map(|end| end.handler));
    let handlers = idle.into_iter().chain(shutdown).collect();
    let absent = crate::model::Absent { fields, tasks: left_out.tasks, handlers };
    Some(App {
        args,
        module: Module { attrs, vis, ident },
        shared: parts.shared?,
        local: parts.local?,
        init: parts.init?,
        idle: parts.idle,
        shutdown: parts.shutdown,
        tasks: parts.tasks,
        items: parts.items,
        absent,
    })
}

/// Items found in the module so far.
struct Parts<'a> {
    conditions: &'a Conditions,
    constants: &'a Constants,
    shared: Option<Shared>,
    local: Option<Local>,
    init: Option<Init>,
    idle: Option<Idle>,
    shutdown: Option<Shutdown>,
    tasks: Vec<Task>,
    items: Vec<Item>,
    /// The marks seen, on usable items or not.
    seen: Vec<Mark>,
}

impl<'a> Parts<'a> {
    fn new(conditions: &'a Conditions, constants: &'a Constants) -> Self {
        Self {
            conditions,
            constants,
            shared: None,
            local: None,
            init: None,
            idle: None,
            shutdown: None,
            tasks: Vec::new(),
            items: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn item(&mut self, mut item: Item, errors: &mut Errors) {
        if let Item::ForeignMod(block) = item {
            self.foreign_mod(block, errors);
            return;
        }
        if misspelled::take_attribute(&mut item, errors).is_some() {
            return;
        }
        let Some((mark, attr)) = item_attrs(&mut item).and_then(|attrs| take_mark(attrs, errors)) else {
            self.items.push(item);
            return;
        };
        if !self.admit(mark, &attr, errors) {
            return;
        }
        match (mark, item) {
            (Mark::Shared, Item::Struct(item)) => {
                marker_only(&attr, errors);
                self.shared = Some(resources::shared(item, errors));
            }
            (Mark::Local, Item::Struct(item)) => {
                marker_only(&attr, errors);
                self.local = Some(resources::local(item, errors));
            }
            (Mark::Handler(role), Item::Fn(item)) => {
                let item = HandlerItem::Defined(item);
                self.handler(role, Marked { attr, item, conditions: self.conditions }, errors);
            }
            (Mark::Shared | Mark::Local, _) => {
                errors.at(&attr, format_args!("`#[{}]` goes on a struct", mark.name()));
            }
            (Mark::Handler(_), _) => {
                errors.at(&attr, format_args!("`#[{}]` goes on a function", mark.name()));
            }
        }
    }

    /// Moves the handlers out of an `extern` block; the rest of it, if any, is passed through.
    fn foreign_mod(&mut self, mut block: ItemForeignMod, errors: &mut Errors) {
        let mut rest = Vec::new();
        let mut handlers = 0;
        for item in std::mem::take(&mut block.items) {
            let Some(mut function) = foreign_fn(&item) else {
                rest.push(item);
                continue;
            };
            let Some((mark, attr)) = take_mark(&mut function.attrs, errors) else {
                rest.push(item);
                continue;
            };
            handlers += 1;
            if !self.admit(mark, &attr, errors) {
                continue;
            }
            let Mark::Handler(role) = mark else {
                errors.at(&attr, format_args!("`#[{}]` goes on a struct", mark.name()));
                continue;
            };
            let item = HandlerItem::Extern(function);
            self.handler(role, Marked { attr, item, conditions: self.conditions }, errors);
        }
        let rust = block.abi.name.as_ref().is_some_and(|name| name.value() == "Rust");
        if handlers > 0 && !rust {
            errors.at(&block.abi, "handlers defined elsewhere are declared in an `extern \"Rust\"` block");
        }
        if handlers == 0 || !rest.is_empty() {
            block.items = rest;
            self.items.push(Item::ForeignMod(block));
        }
    }

    fn handler(&mut self, role: Role, marked: Marked<'_>, errors: &mut Errors) {
        match role {
            Role::Init => self.init = Some(handler::init(marked, errors)),
            Role::Idle => self.idle = Some(handler::idle(marked, errors)),
            Role::Shutdown => self.shutdown = Some(handler::shutdown(marked, errors)),
            Role::Task => self.tasks.push(task::parse(marked, self.constants, errors)),
        }
    }

    /// Returns whether another item may have this mark: only tasks may have several.
    fn admit(&mut self, mark: Mark, attr: &Attribute, errors: &mut Errors) -> bool {
        let repeated = mark != Mark::Handler(Role::Task) && self.seen.contains(&mark);
        if repeated {
            errors.at(
                attr,
                format_args!(
                    "an application has one `#[{}]`; remove this one, or give both mutually \
                     exclusive `#[cfg]`s",
                    mark.name()
                ),
            );
        }
        self.seen.push(mark);
        !repeated
    }

    /// Reports misspelled marks, and counts those of structs as seen.
    fn report_misspelled(&mut self, errors: &mut Errors) {
        for item in &self.items {
            match item {
                Item::Fn(function) => {
                    take_misspelled(&mut function.clone(), &self.items, errors);
                }
                Item::Struct(item) => {
                    for mark in [Mark::Shared, Mark::Local] {
                        let is_missing = !self.seen.contains(&mark);
                        let mut attrs = item.attrs.iter().filter(|_| is_missing);
                        if attrs.any(|attr| misspelled::report(attr, &[mark.name()], errors).is_some()) {
                            self.seen.push(mark);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn report_missing(&self, module: &syn::Ident, left_out: &[Mark], errors: &mut Errors) {
        let required = [
            (Mark::Shared, "#[shared] struct Shared {}"),
            (Mark::Local, "#[local] struct Local {}"),
            (Mark::Handler(Role::Init), "#[init] fn init(cx: init::Context) -> (Shared, Local) { .. }"),
        ];
        for (mark, example) in required {
            let name = mark.name();
            if left_out.contains(&mark) && !self.seen.contains(&mark) {
                errors.at(
                    module,
                    format_args!(
                        "`{module}` has no `#[{name}]` here, because of the `#[cfg]` of the one it has; add another \
                         one for the opposite condition"
                    ),
                );
            } else if !self.seen.contains(&mark) {
                errors.at(module, format_args!("`{module}` has no `#[{name}]`; add `{example}`"));
            }
        }
    }
}

fn marker_only(attr: &Attribute, errors: &mut Errors) {
    if attr.meta.require_path_only().is_err() {
        let name = if attr.path().is_ident("shared") { "shared" } else { "local" };
        errors.at(attr, format_args!("`#[{name}]` on a struct takes no arguments"));
    }
}

#[cfg(test)]
mod tests {
    fn is_extern(handler: &crate::model::Handler) -> bool {
        matches!(handler.item, crate::model::HandlerItem::Extern(_))
    }

    use proc_macro2::TokenStream;
    use quote::{ToTokens, quote};

    use crate::testing::{app, assert_one, errors, errors_of_module};

    #[track_caller]
    fn rejects(items: TokenStream, parts: &[&str]) {
        assert_one(&errors(items), parts);
    }

    #[test]
    fn rejects_missing_items() {
        let errors = errors_of_module(quote!(), quote!());
        assert_eq!(errors.len(), 3, "{errors:#?}");
        assert!(errors[0].contains("`app` has no `#[shared]`; add `#[shared] struct Shared {}`"));
        assert!(errors[1].contains("`app` has no `#[local]`; add `#[local] struct Local {}`"));
        assert!(errors[2].contains("`app` has no `#[init]`; add `#[init] fn init("));
    }

    #[test]
    fn rejects_duplicate_items() {
        rejects(
            quote! { #[init] fn init(cx: init::Context) -> (Shared, Local) {} },
            &["an application has one `#[init]`"],
        );
        rejects(
            quote! {
                #[idle] fn idle(cx: idle::Context) {}
                #[idle] fn idle(cx: idle::Context) {}
            },
            &["an application has one `#[idle]`"],
        );
        rejects(
            quote! { #[shared] struct Shared {} #[shared] struct Other {} },
            &["an application has one `#[shared]`"],
        );
    }

    #[test]
    fn misplaced_attributes() {
        rejects(quote! { #[task] struct T; }, &["`#[task]` goes on a function"]);
        rejects(quote! { #[local] fn f() {} }, &["`#[local]` goes on a struct"]);
        rejects(
            quote! { #[task] #[idle] fn t(cx: t::Context) {} },
            &["at most one attribute of the framework"],
        );
        rejects(quote! { #[shared(x)] struct Shared {} }, &["`#[shared]` on a struct takes no arguments"]);
        rejects(quote! { extern "C" { #[task] fn t(cx: t::Context); } }, &["in an `extern \"Rust\"` block"]);
    }

    #[test]
    fn keeps_other_items_in_order() {
        let items = quote! {
            use a::b;
            #[derive(Debug)] struct Shared2 {}
            macro_rules! m { () => {} }
            m!();
            extern "C" { fn getpid() -> i32; }
        };
        let app = app(quote! { #[shared] struct Shared {} #items });
        let passed: TokenStream = app.items.iter().map(ToTokens::to_token_stream).collect();
        assert_eq!(passed.to_string(), items.to_string());
    }

    #[test]
    fn handlers_are_taken_out_of_extern_blocks() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[cfg(all())]
            unsafe extern "Rust" {
                #[task(priority = 3)] #[cfg(all())] fn t(cx: t::Context, n: u8);
                /// In another block, too.
                #[task] safe fn u(cx: u::Context<'_>);
                fn other();
            }
            extern "Rust" { #[idle] fn idle(cx: idle::Context) -> !; }
        });
        let [t, u] = &app.tasks[..] else { panic!("there are two tasks") };
        assert!(is_extern(&t.handler) && is_extern(&u.handler));
        assert_eq!(t.priority, 3);
        assert!(app.idle.is_some_and(|idle| is_extern(&idle.handler)));
        let rest = app.items.iter().map(|item| item.to_token_stream().to_string()).collect::<String>();
        assert!(rest.contains("fn other") && !rest.contains("fn t") && !rest.contains("idle"), "{rest}");
    }

    #[test]
    fn handlers_keep_foreign_attributes() {
        let app = app(quote! {
            #[shared] struct Shared {}
            /** docs */ #[inline] #[cfg(all())] #[task] #[allow(unused)] fn t(cx: t::Context) {}
        });
        let crate::model::HandlerItem::Defined(item) = &app.tasks[0].handler.item else {
            panic!("it is defined here")
        };
        assert_eq!(item.attrs.len(), 4, "all but `#[task]`");
    }
}
