//! Invalid periods, intervals, event sources, and policies for releases.
//!
//! Each task of `app` breaks the rule after which it is named.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        unlisted: std::net::UdpSocket,
        polled: std::net::UdpSocket,
        periodic: std::net::UdpSocket,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        unimplemented!()
    }

    #[task(period = 10.millis())]
    async fn async_periodic_task(_: async_periodic_task::Context) {}

    #[task(binds = socket, local = [socket: Option<std::net::UdpSocket> = None])]
    fn binds_declared_local(_: binds_declared_local::Context) {}

    #[task(binds = unlisted)]
    fn binds_unlisted_local(_: binds_unlisted_local::Context) {}

    #[task(burst = 2)]
    fn burst_without_min_interval(_: burst_without_min_interval::Context) {}

    #[task(period = 10.millis(), min_interval = 5.millis())]
    fn min_interval_of_a_periodic_task(_: min_interval_of_a_periodic_task::Context) {}

    #[task(min_interval = 5.millis())]
    async fn min_interval_of_an_async_task(_: min_interval_of_an_async_task::Context) {}

    #[task(min_interval = 0.millis())]
    fn min_interval_zero(_: min_interval_zero::Context) {}

    #[task(offset = 1.millis())]
    fn offset_without_period(_: offset_without_period::Context) {}

    #[task(min_interval = 5.millis(), on_early = skip)]
    fn on_early_unknown(_: on_early_unknown::Context) {}

    #[task(binds = polled, on_idle_source = never, local = [polled])]
    fn on_idle_source_unknown(_: on_idle_source_unknown::Context) {}

    #[task(on_idle_source = once)]
    fn on_idle_source_without_binds(_: on_idle_source_without_binds::Context) {}

    #[task(on_overrun = skip)]
    fn on_overrun_without_period(_: on_overrun_without_period::Context) {}

    #[task(period = 10.millis(), on_overrun = overrun_handler_periodic_late)]
    fn overrun_handler_periodic(_: overrun_handler_periodic::Context) {}

    #[task(period = 1.secs())]
    fn overrun_handler_periodic_late(_: overrun_handler_periodic_late::Context) {}

    #[task(period = 10.millis(), on_overrun = overrun_handler_with_arguments_late)]
    fn overrun_handler_with_arguments(_: overrun_handler_with_arguments::Context) {}

    #[task]
    fn overrun_handler_with_arguments_late(_: overrun_handler_with_arguments_late::Context, by: u32) {}

    #[task(period = 10.millis(), binds = periodic, local = [periodic])]
    fn period_and_binds(_: period_and_binds::Context) {}

    #[task(period = 3.Hz())]
    fn period_not_whole_nanoseconds(_: period_not_whole_nanoseconds::Context) {}

    #[task(period = 0.millis())]
    fn period_zero(_: period_zero::Context) {}
}

mod overrun_handler_missing {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = 10.millis(), on_overrun = laet)]
        fn tick(_: tick::Context) {}

        #[task]
        fn late(_: late::Context) {}
    }
}

mod too_many_bound_tasks {
    macro_rules! app {
        ($($task:ident $source:ident,)*) => {
            #[punctual::app]
            mod app {
                use std::os::unix::net::UnixStream;

                #[shared]
                struct Shared {}

                #[local]
                struct Local {
                    $($source: UnixStream,)*
                }

                #[init]
                fn init(_: init::Context) -> (Shared, Local) {
                    unimplemented!()
                }

                $(
                    #[task(binds = $source, local = [$source])]
                    fn $task(_: $task::Context) {}
                )*
            }
        };
    }

    app! {
        t0 s0, t1 s1, t2 s2, t3 s3, t4 s4, t5 s5, t6 s6, t7 s7, t8 s8, t9 s9, t10 s10, t11 s11, t12 s12,
        t13 s13, t14 s14, t15 s15, t16 s16, t17 s17, t18 s18, t19 s19, t20 s20, t21 s21, t22 s22, t23 s23,
        t24 s24, t25 s25, t26 s26, t27 s27, t28 s28, t29 s29, t30 s30, t31 s31, t32 s32, t33 s33, t34 s34,
        t35 s35, t36 s36, t37 s37, t38 s38, t39 s39, t40 s40, t41 s41, t42 s42, t43 s43, t44 s44, t45 s45,
        t46 s46, t47 s47, t48 s48, t49 s49, t50 s50, t51 s51, t52 s52, t53 s53, t54 s54, t55 s55, t56 s56,
        t57 s57, t58 s58, t59 s59, t60 s60, t61 s61, t62 s62, t63 s63, t64 s64, t65 s65, t66 s66, t67 s67,
        t68 s68, t69 s69, t70 s70, t71 s71, t72 s72, t73 s73, t74 s74, t75 s75, t76 s76, t77 s77, t78 s78,
        t79 s79, t80 s80, t81 s81, t82 s82, t83 s83, t84 s84, t85 s85, t86 s86, t87 s87, t88 s88, t89 s89,
        t90 s90, t91 s91, t92 s92, t93 s93, t94 s94, t95 s95, t96 s96, t97 s97, t98 s98, t99 s99, t100 s100,
        t101 s101, t102 s102, t103 s103, t104 s104, t105 s105, t106 s106, t107 s107, t108 s108, t109 s109,
        t110 s110, t111 s111, t112 s112, t113 s113, t114 s114, t115 s115, t116 s116, t117 s117, t118 s118,
        t119 s119, t120 s120, t121 s121, t122 s122, t123 s123, t124 s124, t125 s125, t126 s126, t127 s127,
        t128 s128, t129 s129, t130 s130, t131 s131, t132 s132, t133 s133, t134 s134, t135 s135, t136 s136,
        t137 s137, t138 s138, t139 s139, t140 s140, t141 s141, t142 s142, t143 s143, t144 s144, t145 s145,
        t146 s146, t147 s147, t148 s148, t149 s149, t150 s150, t151 s151, t152 s152, t153 s153, t154 s154,
        t155 s155, t156 s156, t157 s157, t158 s158, t159 s159, t160 s160, t161 s161, t162 s162, t163 s163,
        t164 s164, t165 s165, t166 s166, t167 s167, t168 s168, t169 s169, t170 s170, t171 s171, t172 s172,
        t173 s173, t174 s174, t175 s175, t176 s176, t177 s177, t178 s178, t179 s179, t180 s180, t181 s181,
        t182 s182, t183 s183, t184 s184, t185 s185, t186 s186, t187 s187, t188 s188, t189 s189, t190 s190,
        t191 s191, t192 s192, t193 s193, t194 s194, t195 s195, t196 s196, t197 s197, t198 s198, t199 s199,
        t200 s200, t201 s201, t202 s202, t203 s203, t204 s204, t205 s205, t206 s206, t207 s207, t208 s208,
        t209 s209, t210 s210, t211 s211, t212 s212, t213 s213, t214 s214, t215 s215, t216 s216, t217 s217,
        t218 s218, t219 s219, t220 s220, t221 s221, t222 s222, t223 s223, t224 s224, t225 s225, t226 s226,
        t227 s227, t228 s228, t229 s229, t230 s230, t231 s231, t232 s232, t233 s233, t234 s234, t235 s235,
        t236 s236, t237 s237, t238 s238, t239 s239, t240 s240, t241 s241, t242 s242, t243 s243, t244 s244,
        t245 s245, t246 s246, t247 s247, t248 s248, t249 s249, t250 s250, t251 s251, t252 s252,
    }
}
