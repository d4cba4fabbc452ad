# berth plan and verify-plan: what they print, how they exit; small problems
# whose best plans are found by hand.
unset(ENV{BERTH_SIM})
set(file ${WORK}/plan_test_problem)
set(plan ${WORK}/plan_test_plan.json)
set(svg ${WORK}/plan_test.svg)
set(cluster ${WORK}/plan_test_cluster.json)
set(effort --effort moves=20000 --threads 2)

include(${CMAKE_CURRENT_LIST_DIR}/berth_check.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)

# Latency: b and c run side by side, d where c ran. c cannot start before 15 on
# the device that has not computed a, nor d before 35: 45 us.
set(graph "berth-graph 1
graph diamond
op Op (x...: any) -> (y)
kernel Op on GPU
device \"GPU:0\" memory 4096
device \"GPU:1\"
link \"GPU:0\" -> \"GPU:1\" latency 5.0 bandwidth 1000.0
link \"GPU:1\" -> \"GPU:0\" latency 5.0 bandwidth 1000.0
node a = Op() -> float32[1] time GPU 10 bytes 0
node net/b = Op(a:0) -> float32[1] time GPU 20 bytes 0
node net/c = Op(a:0) -> float32[1] time GPU 20 bytes 0
node d = Op(net/b:0, net/c:0) -> float32[1] from d (net.cc:4) time GPU 10 bytes 0
return d:0
")
string(REPLACE "op Op (x...: any)" "op Op (x: any repeated optional)" graph "${graph}")
file(WRITE ${file} "${graph}")
check(0 plan ${file} ${effort} --json --out ${plan} --svg ${svg})
expect_json("${out}" 45.0 value)
expect_json("${out}" planned status)
expect_json("${out}" 45.0 bound)  # tiny: every plan that could be better was tried
expect_json("${out}" search witness kind)
expect("${out}" "\"start\": {\"name\":")
expect_json("${out}" latency objective)
expect_json("${out}" diamond name)
expect_json("${out}" net/b ops 1 name)
expect_json("${out}" 2 devices 0 ops)
expect_json("${out}" 4096 devices 0 memory_limit_bytes)
file(READ ${plan} kept)
if(NOT kept STREQUAL out)
  message(FATAL_ERROR "--out wrote something else than --json printed")
endif()
file(READ ${svg} picture)
expect("${picture}" "<svg " "no plan is under 45 us" "planned step 45 us on 2 devices")
check(0 verify-plan ${file} ${plan})
expect("${out}" "value: verified" "bound: verified")
check(0 plan ${file} ${effort})
set(first "${out}")
expect("${out}" "Planned step: 45 us" "GPU:1" "transfers" "no plan is better"
  "the search began with: ")
check(0 plan ${file} ${effort} --what-if "move net to GPU:0" --what-if "link GPU:0-GPU:1 = 1GB/s 105us"
  --what-if "device GPU:1 2x faster")
expect("${out}" "what if move net to GPU:0: +" "what if link" "planned again: +15 us (60 us)" "because")
check(0 plan ${file} ${effort} --compare ${plan})
expect("${out}" "45 us, as much as this plan")

# The same by a cluster file: three devices, one of them faster.
file(WRITE ${cluster} "{\"devices\": [{\"name\": \"GPU\", \"count\": 2},
  {\"name\": \"GPU:2\", \"class\": \"fast\"}],
 \"classes\": [{\"name\": \"fast\", \"type\": \"GPU\", \"speed\": 10}],
 \"default_link\": {\"latency\": \"5us\", \"bandwidth\": \"1GB/s\"}}")
check(0 plan ${file} --cluster ${cluster} ${effort} --json)
expect_json("${out}" 6.0 value)
expect_json("${out}" 0.0 devices 0 busy)

# Two hosts of one device with the network between them: 45 us as above.
string(REGEX REPLACE "(device|link) [^\n]*\n" "" on_hosts "${graph}")
file(WRITE ${file} "${on_hosts}")
file(WRITE ${cluster} "{\"hosts\": [{\"count\": 2, \"devices\": [{\"name\": \"GPU:0\"}]}],
 \"network\": {\"latency\": \"5us\", \"bandwidth\": \"1GB/s\"}}")
check(0 plan ${file} --cluster ${cluster} ${effort} --json --out ${plan})
expect_json("${out}" 45.0 value)
expect_json("${out}" /job:worker/replica:0/task:1/device:GPU:0 devices 1 name)
check(0 verify-plan ${file} ${plan} --cluster ${cluster})

# A pipeline of two layers and their gradients, on two devices of 10 us per micro-batch each, without
# transfer times: (4 + 2 - 1) * 10 = 50 us, and the update of 3. One device takes 4 * 20 + 3 us.
set(layers "berth-graph 1
graph layers
op Op (x: any repeated optional) -> (y)
op Dense (w: resource read, x: float32 repeated optional) -> (y)
op Update (w: resource write, g: float32) -> ()
kernel Op on GPU
kernel Dense on GPU
kernel Update on GPU
device \"GPU:0\"
device \"GPU:1\"
link \"GPU:0\" -> \"GPU:1\" latency 0.0 bandwidth 1000000.0
link \"GPU:1\" -> \"GPU:0\" latency 0.0 bandwidth 1000000.0
node w = VarHandleOp() {dtype = float32, shape = shape[8], shared_name = \"w\"} -> resource(float32)[8]
node f0 = Dense(w:0) -> float32[1] time GPU 4
node f1 = Op(f0:0) -> float32[1] time GPU 4
node b1 = Op(f1:0, f0:0) -> float32[1] follows f1 time GPU 6
node b0 = Op(b1:0, f0:0) -> float32[8] follows f0 time GPU 6
node u0 = Update(w:0, b0:0) time GPU 3
return f1:0
")
file(WRITE ${file} "${layers}")
set(in_stages --objective pipeline --micro-batches 4 --schedule 1f1b)
check(0 plan ${file} ${in_stages} ${effort} --json --out ${plan} --svg ${svg})
expect_json("${out}" pipeline objective)
expect_json("${out}" 4 pipeline micro_batches)
expect_json("${out}" 2 pipeline stages 0 in_flight)
expect_json("${out}" 32.0 devices 0 gradient_bytes)  # eight sums of float32
file(READ ${svg} picture)
expect("${picture}" "<svg " "backward, by micro-batch")
check(0 verify-plan ${file} ${plan})
expect("${out}" "sequence: verified" "value: verified" "bytes and limits: verified" "bound: verified")
file(READ ${plan} kept)
foreach(change "\"schedule\":\"1f1b\"/\"schedule\":\"gpipe\"" "\"micro_batches\":4/\"micro_batches\":5"
    "\"stage\":1/\"stage\":0" "\"backward\":true/\"start\":0")
  string(REPLACE "/" ";" change "${change}")
  list(GET change 0 from)
  list(GET change 1 to)
  string(REPLACE "${from}" "${to}" changed "${kept}")
  if(changed STREQUAL kept)
    message(FATAL_ERROR "the plan does not say ${from}")
  endif()
  file(WRITE ${plan} "${changed}")
  check(1 verify-plan ${file} ${plan})
  expect("${out}" "WRONG")
endforeach()
check(0 plan ${file} ${in_stages} ${effort})
expect("${out}" "2 stages" "bubble" "in flight" "activations")
check(2 plan ${file} --micro-batches 4)

# Memory that no plan fits in, requests that contradict each other.
string(REPLACE "bytes 0" "bytes 5000" heavy "${graph}")
string(REPLACE "device \"GPU:1\"" "device \"GPU:1\" memory 4096" heavy "${heavy}")
file(WRITE ${file} "${heavy}")
check(1 plan ${file} ${effort})
expect("${out}" "No plan is possible: ")
file(WRITE ${file} "berth-graph 1
op Var () -> (v)
op Use (a: resource read, b: resource read) -> ()
kernel Var on GPU
kernel Use on GPU
device \"GPU:0\"
device \"GPU:1\"
node v = Var() -> resource[] on \"/GPU:0\" from v (net.cc:1)
node w = Var() -> resource[] on \"/GPU:1\" from w (net.cc:2)
node u = Use(v:0, w:0)
")
check(1 plan ${file} ${effort} --json)
expect_json("${out}" InvalidArgument error kind)
expect("${out}" "\"kind\": \"resource_edge\"")

# Throughput, a chain: b on the CPU is 4.5, the others pay 1 for what they send
# or fetch, 4 each. With b on an accelerator some device has 5 or more.
set(chain "{\"berth_problem\": 1, \"name\": \"chain\", \"objective\": \"throughput\", \"bytes_per_time\": 1,
 \"classes\": [{\"name\": \"CPU\", \"type\": \"CPU\"}, {\"name\": \"fast\", \"type\": \"ACC\"}],
 \"devices\": [{\"name\": \"ACC:0\", \"class\": \"fast\", \"memory_bytes\": 10, \"copies\": \"both\"}, {\"name\": \"ACC:1\", \"class\": \"fast\", \"memory_bytes\": 10, \"copies\": \"both\"},
  {\"name\": \"CPU:0\", \"class\": \"CPU\", \"copies\": \"receiving\", \"free_of_touch\": true}],
 \"ops\": [{\"name\": \"a\", \"id\": 7, \"times\": [20, 3], \"reads\": [], \"bytes\": 1, \"group\": 0, \"held\": 6, \"touch\": 1},
  {\"name\": \"b\", \"id\": 8, \"times\": [4.5, 3], \"reads\": [0], \"bytes\": 1, \"group\": 1, \"held\": 6, \"touch\": 1},
  {\"name\": \"c\", \"id\": 9, \"times\": [20, 3], \"reads\": [1], \"bytes\": 1, \"group\": 2, \"held\": 6, \"touch\": 0}]}")
file(WRITE ${file} "${chain}")
check(0 plan ${file} --objective throughput ${effort} --json --out ${plan} --svg ${svg})
expect_json("${out}" 4.5 value)
expect_json("${out}" CPU:0 ops 1 device)
expect_json("${out}" 8 ops 1 id)
expect_json("${out}" 6.0 devices 0 peak_bytes)
check(0 verify-plan ${file} ${plan})  # of the objective that it states
expect("${out}" "bound: verified")
file(READ ${plan} kept)
foreach(change "\"value\": 4.5|\"value\": 4.4" "\"device\":\"CPU:0\"|\"device\":\"ACC:0\""
    "\"peak_bytes\":6.0|\"peak_bytes\":5.0")
  string(REGEX MATCH "(.*)\\|(.*)" pair "${change}")
  string(REPLACE "${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" false "${kept}")
  file(WRITE ${plan} "${false}")
  check("1;2" verify-plan ${file} ${plan} --objective throughput)
endforeach()
check(2 verify-plan ${file} ${plan} --objective latency)
expect("${err}" "--objective latency: the problem's objective is throughput")
# Latency of the same ops, by the rules of steps: 3, a copy of 1, 4.5 on the CPU, a copy, 3.
string(REGEX REPLACE ", .\"touch.\": [01]" "" steps "${chain}")
string(REPLACE "throughput" "latency" steps "${steps}")
file(WRITE ${file} "${steps}")
check(0 plan ${file} --objective latency ${effort} --json --out ${plan})
expect_json("${out}" step rules)
expect_json("${out}" 12.5 value)
check(0 verify-plan ${file} ${plan})
expect("${out}" "bound: verified")

# A plan of others, which breaks a limit.
file(WRITE ${file} "${chain}")
file(WRITE ${plan} "{\"berth_plan\": 1, \"rules\": \"load\", \"status\": \"planned\", \"sequence\": [0, 1, 2], \"ops\": [
 {\"name\": \"a\", \"device\": \"ACC:0\"}, {\"name\": \"b\", \"device\": \"ACC:0\"}, {\"name\": \"c\", \"device\": \"ACC:1\"}]}")
check(0 plan ${file} --objective throughput ${effort} --compare ${plan} --json)
expect_json("${out}" 7.0 compare value)
expect_json("${out}" 2.5 compare difference)
check(0 plan ${file} --objective throughput ${effort} --compare ${plan})
expect("${out}" ": 7, 55.56 % more than this plan" "ACC:0 needs 12 B; its limit is 10 B")

# No plan: a is larger than every accelerator, and the CPU has no kernel of it.
string(REPLACE "\"memory_bytes\": 10" "\"memory_bytes\": 5" tight "${chain}")
string(REPLACE "[20, 3]" "[\"inf\", 3]" tight "${tight}")
file(WRITE ${file} "${tight}")
check(1 plan ${file} --objective throughput ${effort} --json --out ${plan})
expect_json("${out}" infeasible status)
expect("${out}" "\"conflict\": {\"text\":\"")
check(1 verify-plan ${file} ${plan} --objective throughput)

# Files of other projects, which a tool converts.
file(WRITE ${file} "4\n0\n0,0\n1,2\n10000000000,0\n20000000000,0\n20000000000,0\n")
check(2 plan ${file} ${effort})
expect("${err}" "converted by tools/plan_problem FILE > PROBLEM")
file(WRITE ${file} "${chain}")

# How to divide a step over devices. Two layers; alone a device takes 15,020 us. Over links of a second nothing
# is sent: the first device has all, or the one that is twice as fast.
set(step "berth-graph 1
graph step
op Dense (w: resource read, x: float32) -> (y)
op Grad (x: float32 repeated) -> (g)
op Update (w: resource write, g: float32) -> ()
kernel Dense on GPU
kernel Grad on GPU
kernel Update on GPU
node x = _Arg() {dtype = float32, index = 0, shape = shape[8,4]} -> float32[8,4]
node a/w = VarHandleOp() {dtype = float32, shape = shape[4,4], shared_name = \"a/kernel\"} -> resource(float32)[4,4]
node a/y = Dense(a/w:0, x:0) -> float32[8,4] time GPU 3000
node b/w = VarHandleOp() {dtype = float32, shape = shape[4,4], shared_name = \"b/kernel\"} -> resource(float32)[4,4]
node b/y = Dense(b/w:0, a/y:0) -> float32[8,4] time GPU 3000
node l = Grad(b/y:0) -> float32[8,4] follows b/y time GPU 10
node b/x = Grad(l:0, b/y:0) -> float32[8,4] follows b/y time GPU 3000
node b/v = Grad(l:0, a/y:0) -> float32[4,4] follows b/y time GPU 3000
node a/v = Grad(b/x:0, x:0) -> float32[4,4] follows a/y time GPU 3000
node u = Update(a/w:0, a/v:0) time GPU 5
node v = Update(b/w:0, b/v:0) time GPU 5
return b/y:0
")
file(WRITE ${file} "${step}")
function(write_machines latency second memory)
  file(WRITE ${cluster} "{\"devices\": [{\"name\": \"GPU\", \"count\": 2, \"memory_bytes\": ${memory}},
    {\"name\": \"GPU:2\", \"class\": \"second\", \"memory_bytes\": ${memory}}, {\"name\": \"CPU:0\"}],
   \"classes\": [{\"name\": \"second\", \"type\": \"GPU\", \"speed\": ${second}}],
   \"default_link\": {\"latency_us\": ${latency}, \"bandwidth_bytes_per_us\": 100000}}")
endfunction()
write_machines(1000000 1 0)
check(0 plan ${file} --parallel --cluster ${cluster} --json -o ${plan})
expect_json("${out}" "berth parallel plan 1" format)
expect_json("${out}" "one device" choice kind)
expect_json("${out}" 8 batch)
file(READ ${plan} kept)
if(NOT kept STREQUAL out)
  message(FATAL_ERROR "-o wrote something else than --json printed")
endif()
write_machines(1000000 2 0)
check(0 plan ${file} --parallel --cluster ${cluster})
expect("${out}" "everything on GPU:2, batch 8: 7510 us per step" "no plan is under 7510 us" "GPU:2 holds" "% slower")
write_machines(1 1 0)
check(0 plan ${file} --parallel --cluster ${cluster} --json)
expect_json("${out}" replicas choice kind)
write_machines(1 1 100)  # less than a variable with its gradient
check(1 plan ${file} --parallel --cluster ${cluster} --json)
expect("${err}" "for batches of 8 fits; the closest, " "does not fit GPU:")
expect_json("${out}" ResourceExhausted error kind)
string(REPLACE "[8,4]" "[?,4]" any "${step}")
file(WRITE ${file} "${any}")
check(2 plan ${file} --parallel --cluster ${cluster})
expect("${err}" "cannot be divided by layers: the shape of x is ")
string(REGEX REPLACE "node (u|v) = [^\n]*\n" "" forward "${step}")
file(WRITE ${file} "${forward}")
check(2 plan ${file} --parallel --cluster ${cluster})
expect("${err}" "no variable is read by a layer and updated by a gradient")
check(2 plan ${file} --parallel --cluster ${cluster} --effort 2s)
expect("${err}" "--effort excludes --parallel")
file(WRITE ${file} "${chain}")
check(2 plan ${file} --parallel)
expect("${err}" "problem file, whose ops have no layers")

# Bad arguments and bad files: code 2, a message, with --json also as data.
function(check_bad message)
  check(2 plan ${ARGN} --json)
  expect("${err}" "${message}")
  expect_json("${out}" BadInput error kind)
endfunction()
check_bad("expected for example 1s, 500ms or moves=100000" ${file} --effort soon)
check_bad("not within 24 hours" ${file} --effort 0s)
check_bad("not within 24 hours" ${file} --effort 1e400s)
check_bad("no number of moves" ${file} --effort moves=many)
check_bad("no_such_file" ${WORK}/no_such_file)
check_bad("there is no op" ${file} ${effort} --what-if "move x to ACC:0")
check_bad("begins with none of these words" ${file} ${effort} --what-if "paint GPU:0")
check_bad("expected a graph text" ${file} --devices CPUx2)
file(WRITE ${cluster} "{\"devices\": [{\"name\": \"GPU:0\", \"memory\": \"16\"}]}")
check_bad("expected a graph text" ${file} --cluster ${cluster})
file(WRITE ${file} "${graph}")
check_bad("devices[0].memory: \"16\" has no unit" ${file} --cluster ${cluster})
file(WRITE ${file} "{\"nodes\": 5}")
check_bad("plan_test_problem: the document: has no" ${file})
file(WRITE ${file} "what is this")
check_bad("no known format" ${file})
check(2 plan)
check(2 plan ${file} --objective mine)
check(2 plan ${file} --threads -1)
check(2 verify-plan ${file})

file(REMOVE ${file} ${plan} ${svg} ${cluster})
