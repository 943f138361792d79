//! `#[cfg_attr(.., cfg(..))]` is a `#[cfg]`: it also removes the code generated for its item.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        here: u32,
        #[cfg_attr(all(), cfg(any()))]
        gone: Missing,
    }

    #[local]
    struct Local {
        #[cfg_attr(all(), cfg(any()))]
        gone: Missing,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        there::spawn().unwrap();
        (Shared { here: 0 }, Local {})
    }

    #[cfg_attr(all(), cfg(any()))]
    #[idle]
    fn idle(_: idle::Context) {
        missing();
    }

    #[cfg_attr(all(), inline, cfg(any()))]
    #[task(priority = 3, shared = [here], local = [gone])]
    fn gone(_: gone::Context, _: Missing) {}

    #[cfg_attr(all(), cfg_attr(all(), cfg(any())))]
    #[task(priority = 2, period = MISSING)]
    fn gone_too(_: gone_too::Context) {}

    #[cfg_attr(any(), cfg(any()))]
    #[task(
        shared = [#[cfg_attr(any(), cfg(any()))] here, #[cfg_attr(all(), cfg(any()))] gone],
        local = [#[cfg_attr(all(), cfg(any()))] gone_from_the_list: Missing = MISSING]
    )]
    fn there(_: there::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
