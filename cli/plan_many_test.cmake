# berth plan and verify-plan on as many devices as may be planned for.
unset(ENV{BERTH_SIM})
include(${CMAKE_CURRENT_LIST_DIR}/berth_check.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)
set(plan ${WORK}/plan_many_test_plan.json)

# A cluster of 4,096 devices: a and b side by side, c where it must be.
file(WRITE ${WORK}/plan_test_many "berth-graph 1
op Op () -> (y)
kernel Op on GPU
node a = Op() -> float32[1] time GPU 10 bytes 0
node b = Op() -> float32[1] time GPU 10 bytes 0
node c = Op() -> float32[1] on \"/GPU:4095\" time GPU 7 bytes 0
return a:0, b:0, c:0
")
foreach(objective latency throughput)
  check(0 plan ${WORK}/plan_test_many --devices GPUx4096 --objective ${objective} --effort moves=20000 --threads 2
    --json --out ${plan})
  expect_json("${out}" 10.0 value)
  check(0 verify-plan ${WORK}/plan_test_many ${plan} --devices GPUx4096 --objective ${objective})
endforeach()
