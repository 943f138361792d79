//! User items have the names of everything in generated code.

#![allow(dead_code, non_camel_case_types, non_snake_case, unused_imports, unused_macros)]

/// Methods of everything, under all of these names, which take precedence over those that borrow.
mod methods {
    macro_rules! names {
        ($($name:ident)*) => {
            pub trait Everything: ::core::marker::Sized {
                $(fn $name(self) {})*
            }
            impl<Any> Everything for Any {}
        };
    }
    include!("../ui/support/generated_names.rs");
}

/// Types and values.
mod types {
    macro_rules! names {
        ($($name:ident)*) => { $(#[derive(Debug)] pub struct $name;)* };
    }
    include!("../ui/support/generated_names.rs");
    names! { B F N S T W config }
}

/// Modules, so that a path that begins with such a name leads nowhere.
mod modules {
    macro_rules! names {
        ($($name:ident)*) => { $(pub mod $name {})* };
    }
    include!("../ui/support/generated_names.rs");
}

macro_rules! unreachable {
    ($($any:tt)*) => {
        compile_error!("a macro of the user's")
    };
}

macro_rules! app {
    ($module:ident { $($items:tt)* } $($args:tt)*) => {
        #[::punctual::app(main = false, $($args)*)]
        mod $module {
            use crate::hygiene::methods::Everything;
            $($items)*
            use ::core::primitive::u32 as Word;

            #[shared]
            struct Shared {
                one: Word,
                two: Word,
                table: Word,
                #[lock_free]
                free: Word,
                __punctual_job: Word,
            }

            #[local]
            struct Local {
                source: ::std::net::UdpSocket,
                of_idle: Word,
                unused: Word,
                field: Word,
            }

            #[init(local = [of_init: Word = 1])]
            fn init(_: init::Context, argument: Word) -> (Shared, Local) {
                let source = ::std::net::UdpSocket::bind("127.0.0.1:0");
                let ::core::result::Result::Ok(source) = source else { ::core::panic!("no socket") };
                let resources = Shared { one: argument, two: 0, table: 0, free: 0, __punctual_job: 0 };
                assert!(::core::result::Result::is_ok(&message::spawn(1, 2)));
                assert!(::core::result::Result::is_ok(&waits::spawn(1)));
                (resources, Local { source, of_idle: 0, unused: 0, field: 0 })
            }

            #[idle(shared = [one], local = [of_idle, declared: Word = 0])]
            fn idle(cx: idle::Context) {
                *cx.local.of_idle += *cx.local.declared;
            }

            #[shutdown(shared = [two], local = [field, declared: Word = 0])]
            fn shutdown(cx: shutdown::Context) {
                *cx.local.field += *cx.local.declared + *cx.shared.two;
            }

            #[task(priority = 2, shared = [one, two, free, __punctual_job], local = [field, __punctual_own: Word = 0], budget = 5.millis(), on_budget = kill)]
            fn message(cx: message::Context, one: Word, two: Word) {
                *cx.local.field += one + two + *cx.local.__punctual_own;
                *cx.shared.free += 1;
            }

            #[task(priority = 3, binds = source, shared = [&table], local = [source])]
            fn bound(_: bound::Context) {}

            #[task(period = 1.millis(), offset = 1.millis(), on_overrun = stop, deadline = ::punctual::Duration::from_millis(1))]
            fn stops(_: stops::Context) {
                ::punctual::shutdown();
            }

            #[task(period = 1.millis(), on_overrun = handler, execution = 10.micros(), shared = [two])]
            fn periodic(_: periodic::Context) {}

            #[task]
            fn handler(_: handler::Context) {}

            #[task(priority = 2, shared = [one], waits = 2)]
            async fn waits(_: waits::Context, _: Word) {}

            #[task(priority = 4)]
            async fn starts(cx: starts::Context) {
                assert!(::core::result::Result::is_ok(&cx.local_spawner.stays(1)));
            }

            #[task(priority = 4, local_task)]
            async fn stays(_: stays::Context, _: Word) {}
        }
    };
}

app! { one { use crate::hygiene::types::*; } cpu = 0, priority_base = 40, wake_latency = 1.micros(), trace = false }
app! { global { use crate::hygiene::types::*; } executor = "global" }
app! { nowhere { use crate::hygiene::modules::*; } }

#[test]
fn runs() {
    let config = || punctual::Config::new().virtual_time();
    one::run(config(), 1).expect("the app runs");
    global::run(config(), 1).expect("the app runs");
    nowhere::run(config(), 1).expect("the app runs");
}
